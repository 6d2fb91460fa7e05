"""One call to a model server: over real sockets, on both event loops, against servers that answer by script."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
import sys
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import pytest
import trustme
from scripted_server import Script
from until import until

from openjev_core.backends import http_client as client_module
from openjev_core.backends.http_client import HttpClient
from openjev_core.errors import BackendUnavailable, DeadlineExceeded

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
STRAY = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"
CUT_SHORT = "^Server broke off its answer: the connection was closed in the middle$"
NO_ANSWER = "^Server closed the connection without an answer$"
NO_HTTP = "^Server broke off its answer: it is no HTTP: "


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request):
    return "asyncio", {"use_uvloop": request.param}


@asynccontextmanager
async def serving(handle, *, path="", tls=None, **options):
    """A client of a server on a port of its own."""
    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    async with client_of(f"{'https' if tls else 'http'}://127.0.0.1:{port}{path}", **options) as client:
        yield client
    server.close()


@asynccontextmanager
async def client_of(url, **options):
    client = HttpClient("Server", url, **options)
    try:
        yield client
    finally:
        await client.aclose()


async def post(client, body=b"{}"):
    return (await client.send("POST", client.address("generate"), body))[1]


async def turn():
    for _ in range(20):
        await asyncio.sleep(0.002)


def descriptors():
    return len([*Path("/proc/self/fd").iterdir()])


async def test_connections_are_kept_and_calls_at_once_have_one_each():
    go = asyncio.Event()
    script = Script([OK], [go, OK], [OK], [OK], [OK])
    async with serving(script) as client:
        await post(client)
        first = asyncio.create_task(post(client))
        await turn()
        await post(client)
        go.set()
        await first
        await asyncio.gather(post(client), post(client))
    assert 2 == script.connections


async def test_one_that_was_idle_for_too_long_is_not_used_again(monkeypatch):
    monkeypatch.setattr(client_module, "KEEPALIVE", 0.01)
    script = Script([OK], [OK])
    async with serving(script) as client:
        await post(client)
        await turn()
        await post(client)
    assert 2 == script.connections


@pytest.mark.parametrize(
    ("parts", "body"),
    [
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r", b"\nc\r\n0\r\n\r\n"], b"abc"),
        ([b"HTTP/1.1 200 OK\r\n\r\nuntil the end", None], b"until the end"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK], b"ok"),
        ([bytes([byte]) for byte in OK], b"ok"),
        ([OK, None], b"ok"),
        ([OK.replace(b"/1.1", b"/1.0")], b"ok"),
        ([OK.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")], b"ok"),
        ([OK.replace(b"OK\r\n", b"OK\r\nContent-Encoding: gzip\r\n")], b"ok"),
        ([OK + STRAY], b"ok"),
    ],
)
async def test_every_form_of_an_answer_and_the_next_one(parts, body):
    async with serving(Script(parts, [OK])) as client:
        assert body == await post(client)
        await turn()
        assert b"ok" == await post(client)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([OK[:-1], None], CUT_SHORT),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", None], CUT_SHORT),
        ([b"SSH-2.0-OpenSSH\r\n"], NO_HTTP),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"], NO_HTTP),
        ([b"HTTP/1.1 200 OK\r\nX: ", *[b"x" * 1000] * 50], NO_HTTP),
        ([b"HTTP/1.1 200 OK\r\n", *[b"X: x\r\n"] * 500], NO_HTTP),
        ([b"HTTP/1.1 200 OK\r\n\r\n", *[bytes(1000)] * 50], "^Server broke off its answer: it took more than 20,000"),
    ],
)
async def test_what_is_no_whole_answer(monkeypatch, parts, said):
    monkeypatch.setattr(client_module, "MAX_ANSWER", 20_000)
    script = Script([*parts, ...], [OK])
    async with serving(script) as client:
        with pytest.raises(BackendUnavailable, match=said):
            await post(client)
        assert b"ok" == await post(client)
    assert 2 == script.connections


async def test_an_answer_to_nothing_is_not_taken_for_the_next_one():
    more = asyncio.Event()
    script = Script([OK, more, STRAY], [OK])
    async with serving(script) as client:
        await post(client)
        more.set()
        await turn()
        assert b"ok" == await post(client)
    assert 2 == script.connections


@pytest.mark.parametrize("parts", [[None], [OK[:20], None], [b"HTTP/1.1 100 Continue\r\n\r\n", None]])
async def test_a_connection_that_closes_without_an_answer_is_replaced_once(parts):
    script = Script([OK], parts, [OK], parts, parts, [OK])
    async with serving(script) as client:
        await post(client)
        assert b"ok" == await post(client, b"again")
        with pytest.raises(BackendUnavailable, match=NO_ANSWER):
            await post(client)
        assert b"ok" == await post(client)
    assert 2 == sum(request.endswith(b"again") for request in script.received)


async def test_a_second_attempt_has_what_the_first_one_left():
    slow = asyncio.Event()
    async with serving(Script([OK], [slow, None], [...])) as client:
        await post(client)
        call = asyncio.create_task(client.send_within(0.3, "GET", "health"))
        await asyncio.sleep(0.2)
        slow.set()
        with pytest.raises(DeadlineExceeded, match=r"^Server did not answer within 0\.3 s$"):
            await asyncio.wait_for(call, 0.25)


@pytest.mark.parametrize("way", ["late", "cancelled"])
@pytest.mark.parametrize("parts", [[], [OK[:20]], [OK[:-1]]])
async def test_a_call_that_is_given_up_closes_its_connection_at_once(parts, way):
    script = Script([*parts, ...], [OK])
    async with serving(script) as client:
        call = asyncio.create_task(client.send_within(0.05, "GET", "health") if way == "late" else post(client))
        await script.asked.wait()
        await turn()
        if way == "cancelled":
            call.cancel()
        with pytest.raises(DeadlineExceeded if way == "late" else asyncio.CancelledError):
            await call
        await asyncio.wait_for(script.closed.wait(), 5)
        assert b"ok" == await post(client)
    assert 2 == script.connections


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"])
async def test_a_body_that_the_server_does_not_take_keeps_no_descriptor(answer):
    taken = []

    async def deaf(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        taken.append(writer)

    async with serving(deaf) as client:
        before = descriptors()
        calls = [asyncio.create_task(post(client, bytes(16 * 1024 * 1024))) for _ in range(2)]
        await until(lambda: len(taken) == 2 and all(call.done() or not answer for call in calls))
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        await turn()
        assert before + len(taken) == descriptors()
        for writer in taken:
            writer.transport.abort()


async def test_closing_does_not_wait_for_a_server_that_takes_nothing(monkeypatch):
    monkeypatch.setattr(client_module, "CLOSE_TIMEOUT", 0.01)
    taken = []

    async def deaf(reader, writer):
        taken.append(writer)
        await reader.readuntil(b"\r\n\r\n")

    async with serving(deaf) as client:
        call = asyncio.create_task(post(client, bytes(16 * 1024 * 1024)))
        await until(lambda: taken)
        await turn()
        await asyncio.wait_for(client.aclose(), 5)
        taken[0].transport.abort()
        with pytest.raises(BackendUnavailable):
            await call


async def test_nothing_is_followed_remembered_or_sent_through_a_proxy(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    away = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
    script = Script([away], [OK])
    async with serving(script) as client:
        assert 307 == (await client.send("POST", client.address("generate"), b"{}"))[0]
        await post(client)
    assert [b"POST /generate"] * 2 == [request[:14] for request in script.received]
    assert not any(b"Cookie" in request for request in script.received)


async def test_closing_leaves_nothing_behind_and_sends_nothing_again():
    script = Script([OK], [...], [OK])
    async with serving(script) as client:
        before, tasks = descriptors(), asyncio.all_tasks()
        await post(client)
        call = asyncio.create_task(post(client))
        await turn()
        await client.aclose()
        with pytest.raises(BackendUnavailable):
            await call
        await turn()
        assert (2, before, tasks) == (len(script.received), descriptors(), asyncio.all_tasks())


# Connecting.


@contextmanager
def swallowing(host="127.0.0.1", port=0):
    """The port of a listener that is full: the system lets every further connection wait."""
    with socket.socket() as listener, socket.socket() as one, socket.socket() as two:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(0)
        for filler in (one, two):
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@pytest.fixture
def addresses(monkeypatch):
    """Addresses that every name stands for."""
    known = []

    async def resolve(_self, host, port=0, family=0):
        return [
            {"hostname": host, "host": at, "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}
            for at in known
        ]

    monkeypatch.setattr(aiohttp.ThreadedResolver, "resolve", resolve)
    return known


async def test_a_port_where_nobody_listens():
    async with serving(Script()) as client:
        pass
    async with client_of(client.url) as client:
        with pytest.raises(BackendUnavailable, match=r"^Server cannot be reached: 127\.0\.0\.1:\d+: .*111"):
            await post(client)


async def test_an_address_that_swallows_packets_is_told_and_holds_no_descriptor(monkeypatch):
    with swallowing() as port:
        before = descriptors()
        async with client_of(f"http://127.0.0.1:{port}") as client:
            with pytest.raises(DeadlineExceeded, match=r"^Server did not answer within 0\.05 s$"):
                await client.send_within(0.05, "GET", "health")
            calls = [asyncio.create_task(post(client)) for _ in range(50)]
            await turn()
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)
            await turn()
            assert before == descriptors()
        monkeypatch.setattr(client_module, "CONNECT_TIMEOUT", 0.05)
        async with client_of(f"http://127.0.0.1:{port}") as client:
            with pytest.raises(
                BackendUnavailable, match=r"^Server cannot be reached: .*: no connection within 0\.05 s$"
            ):
                await post(client)


async def test_several_addresses_of_a_name_are_tried_side_by_side(addresses):
    async with serving(Script([OK])) as direct:
        port = int(direct.url.rpartition(":")[2])
        addresses.extend(["127.0.0.2", "127.0.0.1"])
        with swallowing("127.0.0.2", port):
            async with client_of(f"http://server.test:{port}") as client:
                assert b"ok" == await asyncio.wait_for(post(client), 3)


async def test_a_name_is_written_as_it_is_registered(addresses):
    """Python's own spelling of this one is `fass.de`, which is another's."""
    addresses.append("127.0.0.1")
    script = Script([OK])
    async with serving(script) as direct:
        port = direct.url.rpartition(":")[2]
        async with client_of(f"http://fa\u00df.de:{port}") as client:
            await post(client)
    assert f"Host: xn--fa-hia.de:{port}\r\n".encode() in script.received[0]


async def test_a_cancelled_call_never_closes_the_descriptor_of_another():
    """Cancelled at each step of its connecting; a descriptor that was closed once is another's by the second time."""
    async with serving(Script(*[[OK]] * 20)) as client:
        gc.freeze()  # a collection of all that pytest holds would take long
        for steps in range(12):
            gc.disable()
            call = asyncio.create_task(post(client))
            for _ in range(steps):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.wait([call])
            await asyncio.sleep(0)
            others = [os.open(os.devnull, os.O_RDONLY) for _ in range(10)]
            del call
            gc.enable()
            gc.collect()
            for other in others:
                os.close(other)  # raises where it was closed
            await turn()
        gc.unfreeze()


async def test_certificates(tmp_path):
    """One that is not trusted is told; one that is, because the system's authorities are others."""
    authority, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    code = (
        "import asyncio, sys\nfrom openjev_core.backends.http_client import HttpClient\n"
        "async def main():\n    client = HttpClient('Server', sys.argv[1])\n"
        "    print((await client.send_within(9, 'GET', 'health'))[0])\n    await client.aclose()\nasyncio.run(main())"
    )
    async with serving(Script([OK]), tls=context) as client:
        with pytest.raises(BackendUnavailable, match=r"cannot be reached: .*certificate verify failed"):
            await post(client)
        trusting = {**os.environ, "SSL_CERT_FILE": str(tmp_path / "authority.pem")}
        run = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, client.url, env=trusting, stdout=asyncio.subprocess.PIPE
        )
        assert b"200\n" == (await run.communicate())[0]


async def test_a_tls_greeting_without_answer_ends_with_its_call():
    script = Script()
    async with serving(script) as plain, client_of(plain.url.replace("http:", "https:")) as client:
        with pytest.raises(DeadlineExceeded):
            await client.send_within(0.1, "GET", "health")
        await asyncio.wait_for(script.closed.wait(), 5)
