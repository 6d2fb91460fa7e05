"""Kept connections to one SGLang.

For each call of a request there is little else to do than to write one body and to read one, so what a call costs is
much of what a request costs: 0.06 CPU-ms here, 0.9 in httpx's client over its own transport.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque

import httpx

from openjev_core.backends.sglang.connection import Answer, Connection, ConnectionClosed, late
from openjev_core.errors import BackendUnavailable

CONNECT_TIMEOUT = 5.0
KEEPALIVE = 4.0
"""Seconds that an idle connection is kept: SGLang's Python front end closes its own after 5."""


class Connections:
    """As many connections as there are exchanges at once, each kept for the next; HTTP/1.1, no proxies, no redirects.

    Args:
        url: An address at the server; of it, the scheme, host and port are used.
        keepalive: Seconds that an idle connection is kept.
    """

    def __init__(self, url: httpx.URL, keepalive: float = KEEPALIVE) -> None:
        self._secure = url.scheme == "https"
        # As it is registered: Python would look up another name for some with umlauts.
        self._host = url.raw_host.decode("ascii")
        self._port = url.port or (443 if self._secure else 80)
        self._keepalive = keepalive
        self._idle: deque[Connection] = deque()
        self._tls: ssl.SSLContext | None = None
        self._closed = False

    async def exchange(self, request: bytes, seconds: float) -> Answer:
        """Send a request and wait for its whole response.

        A server may close a kept connection at the moment when it is used again: then the request is sent once more,
        on a new one. Reading a logprob twice does no harm.

        Args:
            request: Its line, headers and body.
            seconds: For all of it, connecting and a second attempt included.

        Raises:
            ConnectionClosed: A new connection was closed before a response began.
            BackendUnavailable: There is no connection, the response broke off, or it is no HTTP.
            DeadlineExceeded: No response in time.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        kept = self._take()
        if kept is not None:
            try:
                return await self._exchange(kept, request, seconds, deadline)
            except ConnectionClosed:
                pass
        return await self._exchange(await self._connect(seconds, deadline), request, seconds, deadline)

    async def _exchange(self, connection: Connection, request: bytes, seconds: float, deadline: float) -> Answer:
        expiry = asyncio.get_running_loop().call_at(deadline, connection.expire, seconds)
        try:
            answer = await connection.exchange(request)
        finally:
            expiry.cancel()
        if self._closed:
            connection.close()
        elif connection.is_open:
            connection.idle_since = time.monotonic()
            self._idle.append(connection)
        return answer

    async def _connect(self, seconds: float, deadline: float) -> Connection:
        """A new connection; it has what is left of ``seconds``, and no more than :data:`CONNECT_TIMEOUT`."""
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            raise late(seconds)
        try:
            return await connect(self._host, self._port, min(left, CONNECT_TIMEOUT), self._context())
        except TimeoutError as error:
            if left <= CONNECT_TIMEOUT:
                raise late(seconds) from None
            # The system has a limit of its own, and words for it.
            raise self._unreachable(str(error) or f"no connection within {CONNECT_TIMEOUT:g} s") from None
        except OSError as error:  # a certificate that is not trusted is one as well
            raise self._unreachable(str(error)) from error

    def close(self) -> None:
        """Close what is idle now, and what is under way when its exchange has ended."""
        self._closed = True
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def _unreachable(self, why: str) -> BackendUnavailable:
        return BackendUnavailable(f"SGLang cannot be reached: {self._host}:{self._port}: {why}")

    def _context(self) -> ssl.SSLContext | None:
        """One for all connections: reading the system's certificates takes 20 ms, in which nothing else happens."""
        if self._secure and self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    def _take(self) -> Connection | None:
        """The connection that was used last; those that were idle for too long are closed on the way."""
        idle = self._idle
        while idle and (not idle[0].is_open or time.monotonic() - idle[0].idle_since > self._keepalive):
            idle.popleft().close()
        while idle:
            connection = idle.pop()
            if connection.is_open:
                return connection
        return None


async def connect(host: str, port: int, seconds: float, tls: ssl.SSLContext | None) -> Connection:
    """A new connection.

    Raises:
        TimeoutError: It takes too long.
        OSError: It is refused, the name is unknown, or the certificate is not trusted.
    """
    loop = asyncio.get_running_loop()
    handshake = None if tls is None else seconds
    # Never cancelled: cancelling uvloop while it connects has closed descriptors twice, by then another's (its issue
    # 738), and a client that hangs up may cancel a call at any moment.
    connecting = asyncio.create_task(
        loop.create_connection(Connection, host, port, ssl=tls, ssl_handshake_timeout=handshake)
    )
    try:
        async with asyncio.timeout(seconds):
            _, connection = await asyncio.shield(connecting)
    except (TimeoutError, asyncio.CancelledError):
        connecting.add_done_callback(close_unwanted)
        raise
    return connection


def close_unwanted(connecting: asyncio.Task[tuple[asyncio.Transport, Connection]]) -> None:
    """Close a connection that was made for a caller that is gone."""
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result()[1].close()
