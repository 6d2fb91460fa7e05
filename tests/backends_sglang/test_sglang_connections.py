"""Kept connections, against servers that answer by script: on both event loops, over real sockets."""

from __future__ import annotations

import asyncio
import gc
import ssl
import weakref
from contextlib import asynccontextmanager

import httpx
import pytest
import trustme

from openjev_core.backends.sglang import connection, connections
from openjev_core.backends.sglang.connection import ConnectionClosed
from openjev_core.backends.sglang.connections import Connections
from openjev_core.errors import BackendUnavailable, DeadlineExceeded

pytestmark = pytest.mark.anyio

CUT_SHORT = "^SGLang broke off its answer: the connection was closed in the middle"
NO_HTTP = "^SGLang broke off its answer: it is no HTTP"

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request):
    return "asyncio", {"use_uvloop": request.param}


class Script:
    """A server that gives the answers in their turn, whichever connection asks.

    An answer is bytes; ``None`` closes the connection, and an event is waited for.
    """

    def __init__(self, *answers):
        self.answers = list(answers)
        self.received = []
        self.served = []
        self.connections = 0
        self.asked = asyncio.Event()
        self.closed = asyncio.Event()

    async def __call__(self, reader, writer):
        self.connections += 1
        number = self.connections
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    (int(line[15:]) for line in head.lower().split(b"\r\n") if line[:15] == b"content-length:"), 0
                )
                self.received.append(head + await reader.readexactly(length))
                self.served.append(number)
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
async def serving(script, *, tls=None, **options):
    """Connections to a server that follows this script."""
    server = await asyncio.start_server(script, "127.0.0.1", 0, ssl=tls)
    scheme, port = "https" if tls else "http", server.sockets[0].getsockname()[1]
    kept = connections_to(f"{scheme}://127.0.0.1:{port}", **options)
    try:
        yield kept
    finally:
        server.close()
        kept.close()


def connections_to(url, **options):
    return Connections(httpx.URL(url), **options)


async def post(kept, body=b"{}", seconds=60.0):
    return await kept.exchange(b"POST /a HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body), seconds)


async def two_at_once(kept, script, go):
    """Leave two connections idle: the script's first answer waits for ``go``, so its connection was used last."""
    first = asyncio.create_task(post(kept))
    await script.asked.wait()
    await post(kept)
    go.set()
    await first


async def test_what_is_sent_and_what_comes_back():
    script = Script([b"HTTP/1.1 201 Created\r\nX-One: 1\r\nContent-Length: 4\r\n\r\nab", b"cd"])
    async with serving(script) as kept:
        assert (201, b"abcd") == await post(kept, b'{"a":1}')
    assert [b'POST /a HTTP/1.1\r\nContent-Length: 7\r\n\r\n{"a":1}'] == script.received


async def test_a_connection_is_kept_for_the_next_exchange():
    script = Script([OK], [OK], [OK])
    async with serving(script) as kept:
        for _ in range(3):
            await post(kept)
    assert 1 == script.connections


async def test_exchanges_at_once_have_a_connection_each():
    go = asyncio.Event()
    script = Script([go, OK], [OK], [OK], [OK])
    async with serving(script) as kept:
        await two_at_once(kept, script, go)
        await asyncio.gather(post(kept), post(kept))
    assert 2 == script.connections


async def test_one_that_was_idle_for_too_long_is_not_used_again():
    script = Script([OK], [OK])
    async with serving(script, keepalive=0.0) as kept:
        await post(kept)
        await post(kept)
    assert 2 == script.connections


async def test_one_that_the_server_closed_meanwhile_is_not_used_again():
    script = Script([OK, None], [OK])
    async with serving(script) as kept:
        await post(kept)
        await script.closed.wait()
        await asyncio.sleep(0.05)
        assert b"ok" == (await post(kept)).body
    assert 2 == script.connections


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ],
)
async def test_one_that_the_server_will_close_is_not_used_again(answer):
    script = Script([answer], [OK])
    async with serving(script) as kept:
        await post(kept)
        await post(kept)
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
async def test_every_form_of_a_response(parts, status, body):
    async with serving(Script(parts)) as kept:
        assert (status, body) == await post(kept)


@pytest.mark.parametrize(
    ("parts", "error", "said"),
    [
        ([None], ConnectionClosed, "^SGLang closed the connection without an answer"),
        ([OK[:20], None], BackendUnavailable, CUT_SHORT),
        ([OK[:-1], None], BackendUnavailable, CUT_SHORT),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", None], BackendUnavailable, CUT_SHORT),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", None], BackendUnavailable, CUT_SHORT),
        (
            [b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"],
            BackendUnavailable,
            "^SGLang broke off its answer: it goes over to another protocol",
        ),
        ([b"SSH-2.0-OpenSSH\r\n"], BackendUnavailable, NO_HTTP),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"], BackendUnavailable, NO_HTTP),
    ],
)
async def test_what_is_no_whole_response(parts, error, said):
    script = Script(parts, [OK])
    async with serving(script) as kept:
        with pytest.raises(error, match=said) as caught:
            await post(kept)
        assert error is type(caught.value)
        assert b"ok" == (await post(kept)).body
    assert 2 == script.connections


async def test_an_answer_to_nothing_is_not_taken_for_the_next_one():
    more = asyncio.Event()
    script = Script([OK, more, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"], [OK])
    async with serving(script) as kept:
        await post(kept)
        more.set()
        await asyncio.sleep(0.05)
        assert b"ok" == (await post(kept)).body


async def test_two_answers_in_one_packet_end_the_connection():
    script = Script([OK + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"], [OK])
    async with serving(script) as kept:
        assert b"ok" == (await post(kept)).body
        assert b"ok" == (await post(kept)).body
    assert 2 == script.connections


async def test_a_connection_with_the_rest_of_a_request_on_it_is_not_used_again():
    opened = []

    async def refusing(reader, writer):
        opened.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

    async with serving(refusing) as kept:
        large = bytes(64 * 1024 * 1024)
        assert [413, 413] == [(await post(kept, large)).status for _ in range(2)]
        for writer in opened:
            writer.close()
    assert 2 == len(opened)


async def test_a_cancelled_exchange_closes_its_connection():
    script = Script([asyncio.Event()], [OK])
    async with serving(script) as kept:
        call = asyncio.create_task(post(kept))
        await script.asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert b"ok" == (await post(kept)).body
    assert 2 == script.connections


async def test_no_answer_in_time_breaks_the_exchange_off():
    script = Script([asyncio.Event()], [OK])
    async with serving(script) as kept:
        with pytest.raises(DeadlineExceeded, match=r"^SGLang did not answer within 0\.05 s$"):
            await post(kept, seconds=0.05)
        assert b"ok" == (await post(kept)).body
    assert 2 == script.connections


async def test_the_time_for_one_exchange_is_not_that_of_the_next():
    late = asyncio.Event()
    script = Script([OK], [late, OK])
    async with serving(script) as kept:
        await post(kept, seconds=0.5)
        second = asyncio.create_task(post(kept))
        await asyncio.sleep(0.6)
        late.set()
        assert b"ok" == (await second).body
    assert 1 == script.connections


async def test_a_kept_connection_that_turns_out_to_be_closed_is_replaced_by_a_new_one():
    """Whichever of the kept ones is tried: behind a server that has begun anew all of them are gone."""
    go = asyncio.Event()
    script = Script([go, OK], [OK], [None], [OK])
    async with serving(script) as kept:
        await two_at_once(kept, script, go)
        assert b"ok" == (await post(kept, b"again")).body
    assert 3 == script.connections
    assert 2 == sum(request.endswith(b"again") for request in script.received)


async def test_a_new_connection_that_is_closed_at_once_is_not_tried_again():
    script = Script([None], [OK])
    async with serving(script) as kept:
        with pytest.raises(ConnectionClosed):
            await post(kept)
    assert 1 == script.connections


async def test_a_second_attempt_has_what_the_first_one_left():
    slow = asyncio.Event()
    script = Script([OK], [slow, None], [asyncio.Event()])
    async with serving(script) as kept:
        await post(kept)
        began = asyncio.get_running_loop().time()
        call = asyncio.create_task(post(kept, seconds=1.0))
        await asyncio.sleep(0.6)
        slow.set()
        with pytest.raises(DeadlineExceeded, match="within 1 s"):
            await call
        assert 1.5 > asyncio.get_running_loop().time() - began
    assert 2 == script.connections


async def test_connecting_for_a_second_attempt_has_what_the_first_one_left(monkeypatch):
    slow, given = asyncio.Event(), []

    async def connect(_host, _port, seconds, _tls):
        given.append(seconds)
        raise TimeoutError

    script = Script([OK], [slow, None])
    async with serving(script) as kept:
        await post(kept)
        monkeypatch.setattr(connections, "connect", connect)
        call = asyncio.create_task(post(kept, seconds=1.0))
        await asyncio.sleep(0.6)
        slow.set()
        with pytest.raises(DeadlineExceeded, match="within 1 s"):
            await call
    (left,) = given
    assert 0 < left < 0.5


async def test_the_connection_that_was_used_last_is_used_first():
    """So that those which only a peak needed grow old and go away."""
    go = asyncio.Event()
    script = Script([go, OK], [OK], [OK], [OK])
    async with serving(script) as kept:
        await two_at_once(kept, script, go)
        await post(kept)
        await post(kept)
    assert [1, 2, 1, 1] == script.served


async def test_what_ends_after_closing_is_not_kept():
    go = asyncio.Event()
    script = Script([go, OK])
    async with serving(script) as kept:
        call = asyncio.create_task(post(kept))
        await script.asked.wait()
        kept.close()
        go.set()
        assert b"ok" == (await call).body
        await asyncio.wait_for(script.closed.wait(), 5)


async def test_half_an_answer_in_time_is_none():
    async with serving(Script([OK[:-1], asyncio.Event()])) as kept:
        with pytest.raises(DeadlineExceeded):
            await post(kept, seconds=0.05)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([b"HTTP/1.1 200 OK\r\n\r\n", *[bytes(1000)] * 50], "^SGLang broke off its answer: it took more than 20,000"),
        ([b"HTTP/1.1 200 OK\r\nX: ", *[b"x" * 1000] * 50], "broke off its answer: its headers took more than 10,000"),
        ([b"HTTP/1.1 102 Wait\r\n\r\n"] * 1000, "broke off its answer: its headers took more than 10,000 bytes"),
    ],
)
async def test_an_answer_without_end_is_broken_off(monkeypatch, parts, said):
    monkeypatch.setattr(connection, "MAX_HEAD", 10_000)
    monkeypatch.setattr(connection, "MAX_ANSWER", 20_000)
    script = Script([*parts, asyncio.Event()], [OK])
    async with serving(script) as kept:
        with pytest.raises(BackendUnavailable, match=said):
            await post(kept)
        assert b"ok" == (await post(kept)).body
    assert 2 == script.connections


async def test_an_answer_may_be_larger_than_headers_may(monkeypatch):
    monkeypatch.setattr(connection, "MAX_HEAD", 100)
    body = bytes(5000)
    async with serving(Script([b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + body])) as kept:
        assert (200, body) == await post(kept)


class Closed:
    """A transport of a connection that has ended."""

    def is_closing(self):
        return True

    def abort(self):
        pass


def test_what_had_come_is_free_once_the_connection_has_ended():
    """By itself: what waits for Python's collector may be many answers."""
    gc.disable()
    try:
        ended = connection.Connection()
        ended.connection_made(Closed())
        ended.on_body(bytes(1000))
        seen = weakref.ref(ended)
        ended.connection_lost(None)
        del ended
        assert seen() is None
    finally:
        gc.enable()


async def test_a_port_where_nobody_listens():
    async with serving(Script()) as kept:
        pass
    with pytest.raises(BackendUnavailable, match=r"^SGLang cannot be reached: 127\.0\.0\.1:\d+: .*(refused|failed)"):
        await post(kept)


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        # Python's own spelling of this one is `fass.de`, which is another's.
        ("http://fa\u00df.de", "xn--fa-hia.de", 80),
        ("https://sglang.test/base", "sglang.test", 443),
        ("http://[::1]:30000", "::1", 30000),
    ],
)
async def test_where_connections_go(monkeypatch, url, host, port):
    asked = []

    async def connect(*where):
        asked.append(where[:2])
        raise OSError("no descriptors left")

    monkeypatch.setattr(connections, "connect", connect)
    with pytest.raises(BackendUnavailable, match=f"^SGLang cannot be reached: {host}:{port}: no descriptors left$"):
        await post(connections_to(url))
    assert [(host, port)] == asked


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
        time = loop.time

        async def create_connection(self, *_args, **_options):
            return await future

    monkeypatch.setattr(connections.asyncio, "get_running_loop", Loop)
    yield future
    monkeypatch.undo()


async def test_a_tls_greeting_without_answer_ends_with_its_call():
    script = Script()
    server = await asyncio.start_server(script, "127.0.0.1", 0)
    kept = connections_to(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    with pytest.raises(DeadlineExceeded):
        await post(kept, seconds=0.2)
    await asyncio.wait_for(script.closed.wait(), 5)
    server.close()


async def test_a_call_whose_connecting_takes_all_of_its_time_has_no_answer_in_time(connecting):
    with pytest.raises(DeadlineExceeded, match=r"^SGLang did not answer within 0\.01 s$"):
        await post(connections_to("http://sglang.test"), seconds=0.01)
    connecting.set_result((None, handler := Handler()))
    await asyncio.sleep(0.01)
    assert handler.closed


async def test_connecting_has_less_time_than_a_call_may_take(connecting, monkeypatch):
    monkeypatch.setattr(connections, "CONNECT_TIMEOUT", 0.01)
    with pytest.raises(BackendUnavailable, match=r"reached: sglang\.test:80: no connection within 0\.01 s$") as caught:
        await post(connections_to("http://sglang.test"), seconds=60)
    assert BackendUnavailable is type(caught.value)


async def test_certificates_that_cannot_be_read_are_no_crash(monkeypatch):
    def unreadable():
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(connections.ssl, "create_default_context", unreadable)
    with pytest.raises(BackendUnavailable, match="No such file"):
        await post(connections_to("https://127.0.0.1:1"))


async def test_a_cancelled_call_leaves_connecting_alone_and_its_connection_is_closed(connecting):
    call = asyncio.create_task(post(connections_to("http://sglang.test")))
    await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not connecting.cancelled()
    connecting.set_result((None, handler := Handler()))
    await asyncio.sleep(0.01)
    assert handler.closed


async def test_connecting_that_fails_for_nobody_is_silent(connecting, caplog):
    call = asyncio.create_task(post(connections_to("http://sglang.test")))
    await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    connecting.set_exception(OSError("refused"))
    await asyncio.sleep(0.01)
    assert "" == caplog.text


async def test_tls(monkeypatch):
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    script = Script([OK], [OK], [OK])
    async with serving(script, tls=context) as kept:
        with pytest.raises(BackendUnavailable, match=r"cannot be reached: .*certificate verify failed"):
            await post(kept)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    made = []
    monkeypatch.setattr(connections.ssl, "create_default_context", lambda: made.append(1) or trusting)
    async with serving(script, tls=context) as kept:
        answers = await asyncio.gather(*(post(kept) for _ in range(3)))
    assert [b"ok"] * 3 == [answer.body for answer in answers]
    assert [1] == made, "reading the system's certificates holds up the loop for 20 ms"
