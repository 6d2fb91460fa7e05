"""What clients and proxies really send, on every wire: read as it was meant, or refused with the way out."""

from __future__ import annotations

import gzip
import json

import pytest
from live_server import live_server
from raw_http import exchange, post, request

from openjev_core import json_document

BODIES = {
    "/v1/systemone": request(),
    "/v1/decisions": json.dumps(
        {"model": "jev-1", "input": "A state.", "questions": [{"type": "predicate", "instructions": "It is so."}]}
    ).encode(),
    "/mcp": json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "decide", "arguments": {"state": "A state.", "instructions": "It is so."}},
        }
    ).encode(),
}
MCP_HEADERS = ("Accept: application/json, text/event-stream", "Content-Type: application/json")

wires = pytest.mark.parametrize("path", BODIES)


@pytest.fixture(scope="module")
def server():
    """A server with all wires."""
    with live_server(mcp=True) as running:
        yield running


def chunked(path, body, chunk):
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n".encode()
    headers = "".join(f"{header}\r\n" for header in MCP_HEADERS).encode()
    return head + headers + b"\r\n" + chunk(body) + b"0\r\n\r\n"


SENT = {
    "a charset": lambda path, body: post(body, path=path, headers=["Content-Type: application/json; charset=utf-8"]),
    "a quoted charset": lambda path, body: post(
        body, path=path, headers=['Content-Type: application/json;charset="UTF8"']
    ),
    "a query": lambda path, body: post(body, path=f"{path}?api-version=2024-10-21"),
    "a line at the end": lambda path, body: post(body + b"\r\n", path=path),
    "lines before": lambda path, body: post(b"\n  " + body, path=path),
    "an empty coding": lambda path, body: post(body, path=path, headers=["Content-Encoding: "]),
    "two gzip members": lambda path, body: post(
        gzip.compress(body[:9]) + gzip.compress(body[9:]), path=path, headers=["Content-Encoding: gzip"]
    ),
    "HTTP/1.0 without a host": lambda path, body: (
        post(body, path=path).replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"Host: test\r\n", b"")
    ),
    "its length twice": lambda path, body: post(body, path=path, headers=[f"Content-Length: {len(body)}"]),
    "a chunk's extension": lambda path, body: chunked(path, body, lambda b: b"%x;a=b\r\n%b\r\n" % (len(b), b)),
    "zeros before a chunk's size": lambda path, body: chunked(path, body, lambda b: b"0000%x\r\n%b\r\n" % (len(b), b)),
    "a gateway's key": lambda path, body: post(body, path=path, headers=["Authorization: Basic Zm9vOmJhcg=="]),
    "trailers": lambda path, body: post(body, path=path, headers=["TE: trailers"]),
    "a range": lambda path, body: post(body, path=path, headers=["Range: bytes=0-10"]),
    "addresses that are none": lambda path, body: post(
        body, path=path, headers=['X-Forwarded-For: unknown, , 1.2.3.4:55, [::1]:3, "x"']
    ),
    "an offer of HTTP/2": lambda path, body: post(
        body,
        path=path,
        headers=["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"],
    ),
}


def with_mcp_headers(path, data):
    """The request with the headers that the agents' protocol asks for, where it has none of its own."""
    if path != "/mcp":
        return data
    head, _, body = data.partition(b"\r\n\r\n")
    missing = [h for h in MCP_HEADERS if h.partition(":")[0].lower().encode() not in head.lower()]
    return b"\r\n".join([head, *(h.encode() for h in missing)]) + b"\r\n\r\n" + body


@wires
@pytest.mark.parametrize("kind", SENT)
def test_it_is_read(server, path, kind):
    reply = exchange(server, with_mcp_headers(path, SENT[kind](path, BODIES[path])))
    assert 200 == reply.status, reply.body


REFUSED = {
    "nothing": (lambda body: b"", "it is empty"),
    "JSON that was encoded twice": (lambda body: json.dumps(body.decode()).encode(), "was it encoded twice?"),
    "UTF-16": (lambda body: body.decode().encode("utf-16"), "is UTF-16 or UTF-32; send UTF-8"),
    "a byte order mark": (lambda body: b"\xef\xbb\xbf" + body, "starts with a byte order mark; send plain UTF-8"),
    "a zero byte at the end": (lambda body: body + b"\0", "is not JSON: Extra data"),
    "quotes of a shell": (lambda body: body.replace(b'"', b"'"), "is not JSON: Expecting property name"),
    "a field of a form": (lambda body: b"json=" + body, "is not JSON: Expecting value at line 1 column 1"),
    "an event of a stream": (lambda body: b"data: " + body + b"\n\n", "is not JSON: Expecting value at line 1"),
    "the name of a file": (lambda body: b"@request.json", "is not JSON: Expecting value at line 1 column 1"),
}


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/decisions"])
@pytest.mark.parametrize("kind", REFUSED)
def test_it_is_refused_with_what_is_wrong(server, path, kind):
    spoil, said = REFUSED[kind]
    reply = exchange(server, post(spoil(BODIES[path]), path=path))
    assert reply.status == (422 if path == "/v1/systemone" else 400)
    assert said in reply.body.decode()


@pytest.mark.parametrize("members", ["1", "[]", "{}"])
def test_a_tool_s_call_that_would_hold_the_event_loop_is_refused_before_it_is_parsed(server, members):
    """The protocol's library parses on the event loop: 500,000 members held it for half a second."""
    body = BODIES["/mcp"].replace(b'"A state."', b"[" + b",".join([members.encode()] * 10_000) + b"]")
    reply = exchange(
        server, with_mcp_headers("/mcp", post(gzip.compress(body), path="/mcp", headers=["Content-Encoding: gzip"]))
    )
    assert 413 == reply.status
    found = 10_008 if members == "1" else 20_008
    assert (
        f"the body has {found:,} brackets and commas; at most 10,000 are read; POST /v1/systemone takes more"
        == reply.json["detail"]["message"]
    )


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_tool_s_call_has_256_kib_at_most(server, compress):
    def sent(count):
        body = compress(BODIES["/mcp"].replace(b"A state.", b"a" * (count - len(BODIES["/mcp"]) + 8)))
        headers = ["Content-Encoding: gzip"] if compress is gzip.compress else []
        return exchange(server, with_mcp_headers("/mcp", post(body, path="/mcp", headers=headers)))

    assert 200 == sent(256 * 1024).status
    reply = sent(256 * 1024 + 1)
    assert 413 == reply.status
    assert "at /mcp no more than 262,144" in reply.json["detail"]["message"]


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/decisions", "/v1/prompts"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_body_of_more_values_than_any_request_has_is_refused_before_it_is_parsed(monkeypatch, server, path, compress):
    """A million lists, 2 KB of gzip, took 100 MB, and held Python's lock for more than a second."""
    parsed = []
    monkeypatch.setattr(json_document._DECODER, "decode", lambda text: parsed.append(text) or {})
    headers = ["Content-Encoding: gzip"] if compress is gzip.compress else []

    def sent(count):
        return exchange(server, post(compress(b"[" + b"[]," * (count // 2) + b"0]"), path=path, headers=headers))

    reply = sent(50_000)
    assert (413, []) == (reply.status, parsed)
    found = reply.json.get("detail") or reply.json.get("error")
    assert "the body has 50,001 brackets and commas; at most 50,000 are read" == found["message"]
    assert sent(49_998).status in {400, 422}
    assert 1 == len(parsed)


def test_a_tool_s_call_about_a_long_text_is_read(server):
    body = BODIES["/mcp"].replace(b"A state.", b"a, " * 4000)
    assert 200 == exchange(server, with_mcp_headers("/mcp", post(body, path="/mcp"))).status
