"""One HTTP/1.1 connection, for one exchange after another."""

from __future__ import annotations

import asyncio
from typing import cast

import httptools
import httpx
from attrs import frozen

FINAL = 200
"""Statuses below it announce another one."""


@frozen
class Answer:
    """A whole response.

    Attributes:
        status: Its code.
        headers: Names and values as sent.
        body: Its bytes.
    """

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Connection(asyncio.Protocol):
    """A connection on which at most one exchange is under way."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._chunks: list[bytes] = []
        self._answer: asyncio.Future[Answer] | None = None
        self._begun = self._headed = self._sized = False
        self.idle_since = 0.0

    @property
    def is_open(self) -> bool:
        """Whether another exchange may begin."""
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        """Close it; an exchange that is under way breaks off."""
        if self._transport is not None:
            self._transport.abort()

    async def exchange(self, head: bytes, body: bytes) -> Answer:
        """Send a request and wait for its whole response. Cancelling closes the connection.

        Raises:
            httpx.RemoteProtocolError: The connection was closed before a response began.
            httpx.ReadError: The response broke off, or is no HTTP.
        """
        if self._transport is None or self._transport.is_closing():
            raise closed_early(None)
        self._begun = False
        self._answer = asyncio.get_running_loop().create_future()
        try:
            # One write: a small body behind its head in a packet of its own would wait for the head's receipt.
            self._transport.write(head + body)
            return await self._answer
        except BaseException:
            self.close()
            raise
        finally:
            self._answer = None

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast("asyncio.Transport", transport)  # as TCP's and TLS's are, without saying so

    def data_received(self, data: bytes) -> None:
        """Parse what has come. What comes unasked for ends the connection: it would pass for the next answer."""
        if self._answer is None:
            self.close()
            return
        self._begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(httpx.ReadError(f"the answer is no HTTP: {error}"))
        except httptools.HttpParserUpgrade:
            self._fail(httpx.ReadError("the answer goes over to another protocol"))

    def connection_lost(self, exc: Exception | None) -> None:
        """End the exchange that is under way: with its answer, where that was to last until the connection's end."""
        if self._answer is None or self._answer.done():
            return
        if not self._begun:
            self._fail(closed_early(exc))
        elif exc is None and self._headed and not self._sized and self._parser.get_status_code() >= FINAL:
            self.on_message_complete()
        else:
            self._fail(httpx.ReadError(f"the connection was closed in the middle of the answer{of(exc)}"))

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Begin an answer. A second one, which nobody asked for, ends the connection."""
        self._headers, self._chunks, self._headed, self._sized = [], [], False, False
        if self._answer is None or self._answer.done():
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header."""
        self._headers.append((name, value))
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self._sized = True

    def on_headers_complete(self) -> None:
        """Note that there is a body to come."""
        self._headed = True

    def on_body(self, chunk: bytes) -> None:
        """Note a part of the body."""
        self._chunks.append(chunk)

    def on_message_complete(self) -> None:
        """Hand the answer over, unless it only announced another one."""
        status = self._parser.get_status_code()
        if status < FINAL:
            return
        keeps = self._parser.should_keep_alive()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Answer(status, self._headers, b"".join(self._chunks)))
        # A response that overtakes the end of its request leaves the rest of it in the way of the next one.
        if not keeps or (self._transport is not None and self._transport.get_write_buffer_size()):
            self.close()

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
        self.close()


def closed_early(cause: Exception | None) -> httpx.RemoteProtocolError:
    """The error of a connection that was closed before a response began."""
    return httpx.RemoteProtocolError(f"the connection was closed without an answer{of(cause)}")


def of(cause: Exception | None) -> str:
    """What the system says of a lost connection."""
    return "" if cause is None else f": {cause or type(cause).__name__}"
