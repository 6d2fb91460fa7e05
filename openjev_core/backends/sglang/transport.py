"""Kept connections to SGLang under httpx's transport interface.

A call costs a quarter of what httpx's own transport takes. That is much of what one request costs the server: for each
of its calls there is little else to do than to write one body and to read one.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import defaultdict, deque
from typing import cast

import httpx

from openjev_core.backends.sglang.connection import Connection

Origin = tuple[str, str, int]
"""Scheme, host as it is registered (Python would look up another one for some names with umlauts), and port."""


class PooledTransport(httpx.AsyncBaseTransport):
    """As many connections as there are exchanges at once, each kept for the next; HTTP/1.1, no proxies, no redirects.

    Args:
        keepalive: Seconds that an idle connection is kept.
    """

    def __init__(self, keepalive: float) -> None:
        self._keepalive = keepalive
        self._idle: defaultdict[Origin, deque[Connection]] = defaultdict(deque)
        self._tls: ssl.SSLContext | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, its body at once; the response is read whole.

        Raises:
            httpx.ConnectError: There is no connection.
            httpx.ConnectTimeout: There is none in time.
            httpx.RemoteProtocolError: The connection was closed before a response began.
            httpx.ReadError: The response broke off, or is no HTTP.
        """
        url = request.url
        origin = url.scheme, url.raw_host.decode(), url.port or (443 if url.scheme == "https" else 80)
        connection = self._take(origin)
        if connection is None:
            seconds = request.extensions.get("timeout", {}).get("connect")
            connection = await connect(origin, seconds, self._context(url.scheme))
        body = b"".join([chunk async for chunk in cast("httpx.AsyncByteStream", request.stream)])
        answer = await connection.exchange(head_of(request), body)
        if connection.is_open:
            connection.idle_since = time.monotonic()
            self._idle[origin].append(connection)
        # As a stream: `content` would be decoded and copied at once, for half of what the call costs.
        return httpx.Response(answer.status, headers=answer.headers, stream=httpx.ByteStream(answer.body))

    async def aclose(self) -> None:
        """Close what is idle. What is under way closes with its exchange's end or cancellation."""
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()

    def _context(self, scheme: str) -> ssl.SSLContext | None:
        """One for all connections: reading the system's certificates takes 20 ms, in which nothing else happens."""
        if scheme == "https" and self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls if scheme == "https" else None

    def _take(self, origin: Origin) -> Connection | None:
        """The connection that was used last; those that were idle for too long are closed on the way."""
        idle = self._idle[origin]
        while idle and (not idle[0].is_open or time.monotonic() - idle[0].idle_since > self._keepalive):
            idle.popleft().close()
        while idle:
            connection = idle.pop()
            if connection.is_open:
                return connection
        return None


async def connect(origin: Origin, seconds: float | None, tls: ssl.SSLContext | None) -> Connection:
    """A new connection.

    Raises:
        httpx.ConnectError: It is refused, the name is unknown, or the certificate is not trusted.
        httpx.ConnectTimeout: It takes too long.
    """
    _, host, port = origin
    loop = asyncio.get_running_loop()
    # Never cancelled: cancelling uvloop while it connects has closed descriptors twice, by then another's (its issue
    # 738), and a client that hangs up may cancel a call at any moment.
    connecting = asyncio.create_task(loop.create_connection(Connection, host, port, ssl=tls))
    try:
        async with asyncio.timeout(seconds):
            _, connection = await asyncio.shield(connecting)
    except TimeoutError:
        connecting.add_done_callback(close_unwanted)
        within = "in time" if seconds is None else f"within {seconds:g} s"  # the system has a limit of its own
        raise httpx.ConnectTimeout(f"no connection to {host}:{port} {within}") from None
    except asyncio.CancelledError:
        connecting.add_done_callback(close_unwanted)
        raise
    except OSError as error:  # a certificate that is not trusted is one as well
        raise httpx.ConnectError(f"{host}:{port}: {error}") from error
    return connection


def close_unwanted(connecting: asyncio.Task[tuple[asyncio.Transport, Connection]]) -> None:
    """Close a connection that was made for a caller that is gone."""
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result()[1].close()


def head_of(request: httpx.Request) -> bytes:
    """The request line and headers."""
    lines = [b"%b %b HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    lines += [b"%b: %b" % header for header in request.headers.raw]
    return b"\r\n".join([*lines, b"", b""])
