"""Hostile HTTP, one row per kind, on raw sockets."""

from __future__ import annotations

import socket
import sys
import time
from contextlib import contextmanager, suppress

import pytest
from h2.connection import H2Connection
from h2.settings import SettingCodes
from hostile_inputs import CHUNKED, MALFORMED, OVERSIZED, TWO_LENGTHS
from live_server import live_server
from prometheus_client.parser import text_string_to_metric_families
from raw_http import connection, exchange, post, read_reply, request
from until import eventually

GET = b"GET /health/live HTTP/1.1\r\nHost: test\r\n\r\n"


def assert_shape(reply, status, error_type=None):
    assert status == reply.status, reply.body
    assert "application/json" == reply.headers["content-type"]
    assert reply.headers["x-typesafe-request-id"]
    assert {"error_type", "message"} == set(reply.json["detail"])
    if error_type is not None:
        assert error_type == reply.json["detail"]["error_type"]


# hypercorn answers by itself, without a body, what never becomes a request.


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in MALFORMED])
def test_malformed_http_is_refused(server, data):
    reply = exchange(server, data)
    assert (501 if b"Encoding: gzip" in data else 400) == reply.status
    assert reply.closed
    assert 200 == exchange(server, GET).status


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in OVERSIZED])
def test_headers_over_the_limit_are_a_431(server, data):
    reply = exchange(server, data)
    assert (431, True) == (reply.status, reply.closed)


@pytest.fixture(scope="module")
def secure(certificates):
    files, context = certificates
    with live_server(max_body_bytes=1024 * 1024, **files) as running:
        yield running, context


@contextmanager
def tls_connection(server, context):
    with connection(server) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as sock:
        yield sock


@pytest.mark.parametrize(
    ("data", "statuses"),
    [
        *(pytest.param(data, {400, 501}, id=name) for name, data in MALFORMED),
        *(pytest.param(data, {431}, id=name) for name, data in OVERSIZED),
        pytest.param(TWO_LENGTHS, {400}, id="two lengths"),
        pytest.param(post(b'"' + b"a" * 10_000_000 + b'"'), {413}, id="a large body"),
        pytest.param(post(request()), {200}, id="a good one"),
    ],
)
def test_over_tls_it_is_the_same(secure, data, statuses):
    with tls_connection(*secure) as sock:
        with suppress(OSError):
            sock.sendall(data)  # refused before all was sent; the response is what counts
        assert read_reply(sock).status in statuses


def test_tls_offers_http1_alone(secure):
    server, context = secure
    context.set_alpn_protocols(["h2", "http/1.1"])
    with tls_connection(server, context) as sock:
        assert "http/1.1" == sock.selected_alpn_protocol()


def test_a_body_with_two_lengths_is_refused_and_what_follows_it_is_no_request(server):
    with connection(server) as sock:
        sock.sendall(TWO_LENGTHS)
        reply = read_reply(sock)
        assert_shape(reply, 400, "malformed_body")
        assert reply.closed
        assert b"" == sock.recv(65536)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(post(b"", length=100) + request()[:50], id="content-length"),
        pytest.param(
            b"POST /v1/systemone HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", id="chunked"
        ),
    ],
)
def test_a_body_that_its_client_cuts_short_is_never_evaluated(server, data):
    assert exchange(server, data, half_close=True).status in {None, 400}


def test_a_body_over_the_limit_is_refused_from_its_header_alone(server):
    reply = exchange(server, post(b"", length=10_000_000_000))
    assert_shape(reply, 413, "body_too_large")
    assert "1,048,576" in reply.json["detail"]["message"]


@pytest.mark.parametrize(("digits", "status"), [("9" * 20, 413), ("9" * 300, 400)])
def test_an_absurd_length_is_refused_too(server, digits, status):
    assert status == exchange(server, post(b"", length=digits)).status


def test_a_client_that_sends_the_whole_oversized_body_first_still_reads_its_refusal(server):
    body = b'"' + b"a" * 10_000_000 + b'"'
    assert_shape(exchange(server, post(body)), 413, "body_too_large")


def test_a_chunked_body_over_the_limit_is_refused(server):
    chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
    data = CHUNKED + chunk * 40 + b"0\r\n\r\n"
    assert_shape(exchange(server, data), 413, "body_too_large")


def test_a_chunked_body_is_read(server):
    body = request()
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:7], body[7:30], body[30:]))
    data = CHUNKED + chunks + b"0\r\n\r\n"
    assert 200 == exchange(server, data).status


def test_a_chunked_body_without_end_is_a_408(server):
    with connection(server) as sock:
        sock.sendall(b"POST /v1/systemone HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        sock.settimeout(0.05)
        reply = trickle(sock, b"1\r\na\r\n")
    assert_shape(reply, 408, "body_timeout")


def test_a_slow_body_is_a_408(server):
    with connection(server) as sock:
        sock.sendall(post(b"", length=1000))
        reply = trickle(sock, b"a")
    assert_shape(reply, 408, "body_timeout")


def test_slow_headers_hold_their_connection_no_longer_than_an_idle_one():
    with live_server(keep_alive=0.5) as running, connection(running) as sock:
        sock.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n")
        assert None is trickle(sock, b"X: y\r\n").status


def test_a_connection_may_idle_longer_between_requests(server):
    with connection(server) as sock:
        for _ in range(2):
            sock.sendall(GET)
            assert 200 == read_reply(sock).status
            time.sleep(1.3)  # longer than headers may take
        sock.sendall(GET)
        assert 200 == read_reply(sock).status


def trickle(sock, piece):
    """Send a little at a time until the server answers; then read the answer."""
    sock.settimeout(0.05)
    for _ in range(200):
        try:
            sock.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            sock.sendall(piece)
        else:
            sock.settimeout(5)
            return read_reply(sock)
    raise AssertionError("the server waits for ever")


def test_a_client_that_waits_for_leave_to_send_gets_it(server):
    body = request()
    with connection(server) as sock:
        sock.sendall(post(b"", length=len(body), headers=["Expect: 100-continue"]))
        assert b"HTTP/1.1 100" == sock.recv(12)
        rest = sock.recv(4096)
        while b"\r\n\r\n" not in rest:
            rest += sock.recv(4096)
        sock.sendall(body)
        assert 200 == read_reply(sock).status


def test_pipelined_requests_are_answered_in_order(server):
    with connection(server) as sock:
        sock.sendall(GET + GET.replace(b"/health/live", b"/nowhere"))
        first = sock.recv(65536)
        while first.count(b"HTTP/1.1 ") < 2:
            first += sock.recv(65536)
    assert first.index(b"HTTP/1.1 200") < first.index(b"HTTP/1.1 404")


def test_a_client_that_only_half_closes_gets_its_answer(server):
    assert 200 == exchange(server, GET, half_close=True).status


def test_a_refused_body_leaves_a_connection_that_can_be_used_again(server):
    with connection(server) as sock:
        sock.sendall(post(b"a" * 2_000_000))
        assert 413 == read_reply(sock).status
        sock.sendall(GET)
        assert 200 == read_reply(sock).status


ROUTES = {
    "/v1/systemone": {"POST"},
    "/v1/prompts": {"POST"},
    "/v1/models": {"GET", "HEAD"},
    "/v1/limits": {"GET", "HEAD"},
    "/health": {"GET", "HEAD"},
    "/health/live": {"GET", "HEAD"},
    "/metrics": {"GET", "HEAD"},
    "/openapi.json": {"GET", "HEAD"},
    "/docs": {"GET", "HEAD"},
    "/": {"GET", "HEAD"},
}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]


def bodiless(server, data):
    """Status, and whatever follows the headers until the connection ends."""
    with connection(server) as sock:
        sock.sendall(data.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        received = b"".join(iter(lambda: sock.recv(65536), b""))
    head, _, rest = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), rest


@pytest.mark.parametrize("path", ROUTES)
def test_each_wrong_method_is_a_405_that_says_which_are_right(server, path):
    for method in METHODS:
        if method in ROUTES[path]:
            continue
        data = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode()
        if method == "HEAD":
            assert (405, b"") == bodiless(server, data)
            continue
        reply = exchange(server, data)
        assert_shape(reply, 405, "method_not_allowed")
        assert ROUTES[path] == set(reply.headers["allow"].split(", "))


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/v1/systemone/",
        "//v1/systemone",
        "/V1/systemone",
        "/../etc/passwd",
        "/%00",
        "/%ff",
        "/<script>",
        "*",
    ],
)
def test_an_unknown_path_is_a_404(server, path):
    reply = exchange(server, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert_shape(reply, 404, "not_found")
    assert b"\x00" not in reply.body


def test_a_head_request_has_no_body(server):
    assert (200, b"") == bodiless(server, GET.replace(b"GET", b"HEAD"))


def test_an_unknown_upgrade_is_ignored(server):
    assert 200 == exchange(server, GET.replace(b"\r\n\r\n", b"\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")).status


def test_a_websocket_is_refused(server):
    upgrade = (
        b"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n\r\n"
    )
    assert_shape(exchange(server, GET.replace(b"\r\n\r\n", upgrade)), 404, "not_found")


def tasks(server):
    """The tasks on the server's event loop."""
    families = text_string_to_metric_families(exchange(server, b"GET /metrics HTTP/1.0\r\n\r\n").body.decode())
    return next(sample.value for family in families if family.name == "openjev_tasks" for sample in family.samples)


def stalled_http2():
    """A request over HTTP/2 from a client that takes none of its response."""
    client = H2Connection()
    client.initiate_connection()
    client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
    head = {":method": "GET", ":path": "/health/live", ":scheme": "http", ":authority": "x"}
    client.send_headers(1, list(head.items()), end_stream=True)
    return client.data_to_send()


def test_unencrypted_http2_is_refused_before_any_work(server):
    """It cannot be switched off, and hypercorn ends all of a connection when one of its streams goes wrong."""
    client = H2Connection()
    client.initiate_connection()
    head = {":method": "GET", ":path": "/v1/models", ":scheme": "http", ":authority": "x"}
    client.send_headers(1, list(head.items()), end_stream=True)
    found = {}
    with connection(server) as sock:
        sock.sendall(client.data_to_send())
        while b":status" not in found:
            for event in client.receive_data(sock.recv(65536)):
                found.update(getattr(event, "headers", None) or {})
    assert b"505" == found[b":status"]


@pytest.mark.parametrize(
    "garbage",
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100,
        b"PRI * HTTP/2.0\r\n\r\nnot it\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x08\x06\0\0\0\0\x01" + bytes(8),
        GET[:-2] + b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: !!!\r\n\r\n",
        stalled_http2(),
    ],
    ids=["frames", "preface", "ping", "upgrade", "stalled"],
)  # fmt: skip
def test_garbled_http2_leaves_nothing_behind(garbage):
    with live_server(body_timeout=1.0, keep_alive=1.0) as running:
        before = tasks(running)
        with connection(running) as sock:
            sock.sendall(garbage)
            sock.recv(65536)
        assert eventually(lambda: tasks(running) == before)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere such a connection lasts as long as its client's")
def test_a_client_that_never_reads_is_let_go():
    with live_server(body_timeout=1.0) as running, socket.socket() as sock:
        before = tasks(running)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        sock.connect((running.host, running.port))
        sock.settimeout(0.2)
        with suppress(TimeoutError):
            for _ in range(3000):
                sock.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n")
        assert before < tasks(running)
        assert eventually(lambda: tasks(running) == before)
