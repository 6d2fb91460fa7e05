"""Kept connections, against servers that answer by script: on both event loops, over real sockets."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager

import httpx
import pytest
import trustme

from openjev_core.backends.sglang import transport as transports
from openjev_core.backends.sglang.transport import PooledTransport

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request):
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
async def pool():
    transport = PooledTransport(60.0)
    yield transport
    await transport.aclose()


class Script:
    """A server that gives the answers in their turn, whichever connection asks.

    An answer is bytes; ``None`` closes the connection, and an event is waited for.
    """

    def __init__(self, *answers):
        self.answers = list(answers)
        self.received = []
        self.connections = 0
        self.asked = asyncio.Event()
        self.closed = asyncio.Event()

    async def __call__(self, reader, writer):
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    (int(line[15:]) for line in head.lower().split(b"\r\n") if line[:15] == b"content-length:"), 0
                )
                self.received.append(head + await reader.readexactly(length))
                self.asked.set()
                for part in self.answers.pop(0):
                    if part is None:
                        return
                    if isinstance(part, asyncio.Event):
                        await part.wait()
                    else:
                        writer.write(part)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.closed.set()


@asynccontextmanager
async def serving(script, **options):
    server = await asyncio.start_server(script, "127.0.0.1", 0, **options)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def post(pool, url, body=b"{}", **extensions):
    request = httpx.Request("POST", f"{url}/generate?a=b", content=body, extensions=extensions)
    response = await pool.handle_async_request(request)
    await response.aread()
    return response


async def test_what_is_sent_and_what_comes_back(pool):
    script = Script([b"HTTP/1.1 201 Created\r\nX-One: 1\r\nContent-Length: 4\r\n\r\nab", b"cd"])
    async with serving(script) as url:
        response = await post(pool, url, b'{"a":1}')
    assert (201, "1", b"abcd") == (response.status_code, response.headers["x-one"], response.content)
    (received,) = script.received
    assert received.startswith(b"POST /generate?a=b HTTP/1.1\r\nHost: 127.0.0.1:")
    assert received.endswith(b'\r\nContent-Length: 7\r\n\r\n{"a":1}')


async def test_a_connection_is_kept_for_the_next_exchange(pool):
    script = Script([OK], [OK], [OK])
    async with serving(script) as url:
        for _ in range(3):
            await post(pool, url)
    assert 1 == script.connections


async def test_exchanges_at_once_have_a_connection_each(pool):
    go = asyncio.Event()
    script = Script([go, OK], [OK], [OK], [OK])
    async with serving(script) as url:
        first = asyncio.create_task(post(pool, url))
        await script.asked.wait()
        await post(pool, url)
        go.set()
        await first
        await asyncio.gather(post(pool, url), post(pool, url))
    assert 2 == script.connections


async def test_one_that_was_idle_for_too_long_is_not_used_again():
    pool = PooledTransport(0.0)
    script = Script([OK], [OK])
    async with serving(script) as url:
        await post(pool, url)
        await post(pool, url)
    await pool.aclose()
    assert 2 == script.connections


async def test_one_that_the_server_closed_meanwhile_is_not_used_again(pool):
    script = Script([OK, None], [OK])
    async with serving(script) as url:
        await post(pool, url)
        await script.closed.wait()
        await asyncio.sleep(0.05)
        assert b"ok" == (await post(pool, url)).content
    assert 2 == script.connections


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ],
)
async def test_one_that_the_server_will_close_is_not_used_again(pool, answer):
    script = Script([answer], [OK])
    async with serving(script) as url:
        await post(pool, url)
        await post(pool, url)
    assert 2 == script.connections


@pytest.mark.parametrize(
    ("parts", "status", "body"),
    [
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r", b"\nc\r\n0\r\n\r\n"], 200, b"abc"),
        ([b"HTTP/1.1 200 OK\r\n\r\nuntil the end", None], 200, b"until the end"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", OK], 200, b"ok"),
        ([b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"], 404, b""),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], 204, b""),
        ([bytes([byte]) for byte in OK], 200, b"ok"),
    ],
)
async def test_every_form_of_a_response(pool, parts, status, body):
    async with serving(Script(parts)) as url:
        response = await post(pool, url)
    assert (status, body) == (response.status_code, response.content)


@pytest.mark.parametrize(
    ("parts", "error", "said"),
    [
        ([None], httpx.RemoteProtocolError, "closed without an answer"),
        ([OK[:20], None], httpx.ReadError, "closed in the middle of the answer"),
        ([OK[:-1], None], httpx.ReadError, "closed in the middle of the answer"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", None], httpx.ReadError, "in the middle"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", None], httpx.ReadError, "in the middle of the answer"),
        (
            [b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"],
            httpx.ReadError,
            "another",
        ),
        ([b"SSH-2.0-OpenSSH\r\n"], httpx.ReadError, "is no HTTP"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"], httpx.ReadError, "is no HTTP"),
    ],
)
async def test_what_is_no_whole_response(pool, parts, error, said):
    script = Script(parts, [OK])
    async with serving(script) as url:
        with pytest.raises(error, match=said):
            await post(pool, url)
        assert b"ok" == (await post(pool, url)).content
    assert 2 == script.connections


async def test_an_answer_to_nothing_is_not_taken_for_the_next_one(pool):
    more = asyncio.Event()
    script = Script([OK, more, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"], [OK])
    async with serving(script) as url:
        await post(pool, url)
        more.set()
        await asyncio.sleep(0.05)
        assert b"ok" == (await post(pool, url)).content


async def test_two_answers_in_one_packet_end_the_connection(pool):
    script = Script([OK + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"], [OK])
    async with serving(script) as url:
        assert b"ok" == (await post(pool, url)).content
        assert b"ok" == (await post(pool, url)).content
    assert 2 == script.connections


async def test_a_connection_with_the_rest_of_a_request_on_it_is_not_used_again(pool):
    opened = []

    async def refusing(reader, writer):
        opened.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

    async with serving(refusing) as url:
        large = bytes(64 * 1024 * 1024)
        assert [413, 413] == [(await post(pool, url, large)).status_code for _ in range(2)]
        for writer in opened:
            writer.close()
    assert 2 == len(opened)


async def test_a_cancelled_exchange_closes_its_connection(pool):
    script = Script([asyncio.Event()], [OK])
    async with serving(script) as url:
        call = asyncio.create_task(post(pool, url))
        await script.asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert b"ok" == (await post(pool, url)).content
    assert 2 == script.connections


async def test_a_port_where_nobody_listens(pool):
    async with serving(Script()) as url:
        pass
    with pytest.raises(httpx.ConnectError, match=r"^127\.0\.0\.1:\d+: .*(refused|failed)"):
        await post(pool, url)


async def test_a_name_is_looked_up_as_it_is_registered(pool, monkeypatch):
    """Python's own spelling of this one is `fass.de`, which is another's."""
    asked = []

    async def connect(origin, *_):
        asked.append(origin)
        raise httpx.ConnectError("")

    monkeypatch.setattr(transports, "connect", connect)
    with pytest.raises(httpx.ConnectError):
        await post(pool, "http://fa\u00df.de")
    assert [("http", "xn--fa-hia.de", 80)] == asked


class Handler:
    closed = False

    def close(self):
        self.closed = True


@pytest.fixture
async def connecting(monkeypatch):
    """What the loop's connecting returns, to be settled by the test."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    class Loop:
        async def create_connection(self, *_args, **_options):
            return await future

    monkeypatch.setattr(transports.asyncio, "get_running_loop", Loop)
    yield future
    monkeypatch.undo()


async def test_no_connection_in_time(pool, connecting):
    with pytest.raises(httpx.ConnectTimeout, match=r"no connection to sglang\.test:80 within 0\.01 s"):
        await post(pool, "http://sglang.test", timeout={"connect": 0.01})
    connecting.set_result((None, handler := Handler()))
    await asyncio.sleep(0.01)
    assert handler.closed


async def test_a_cancelled_call_leaves_connecting_alone_and_its_connection_is_closed(pool, connecting):
    call = asyncio.create_task(post(pool, "http://sglang.test"))
    await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not connecting.cancelled()
    connecting.set_result((None, handler := Handler()))
    await asyncio.sleep(0.01)
    assert handler.closed


async def test_connecting_that_fails_for_nobody_is_silent(pool, connecting, caplog):
    call = asyncio.create_task(post(pool, "http://sglang.test"))
    await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    connecting.set_exception(OSError("refused"))
    await asyncio.sleep(0.01)
    assert "" == caplog.text


async def test_tls(pool, monkeypatch):
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    script = Script([OK], [OK], [OK])
    async with serving(script, ssl=context) as url:
        secure = url.replace("http:", "https:")
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            await post(pool, secure)
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        made = []
        monkeypatch.setattr(transports.ssl, "create_default_context", lambda: made.append(1) or trusting)
        trusted = PooledTransport(60.0)
        answers = await asyncio.gather(*(post(trusted, secure) for _ in range(3)))
        await trusted.aclose()
    assert [b"ok"] * 3 == [answer.content for answer in answers]
    assert [1] == made, "reading the system's certificates holds up the loop for 20 ms"
