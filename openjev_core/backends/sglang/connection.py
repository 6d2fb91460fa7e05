"""One HTTP/1.1 connection, for one exchange after another."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, cast

import httptools

from openjev_core.errors import BackendUnavailable, DeadlineExceeded

FINAL = 200
"""Statuses below it announce another one."""

MAX_HEAD = 64 * 1024
MAX_ANSWER = 128 * 1024 * 1024
"""Bytes of headers, and of all that comes in one exchange. The most that can be asked for at once, 4,096 prompts with
702 labels each, takes three quarters of that, at 35 bytes a label."""

SIZES = frozenset({b"content-length", b"transfer-encoding"})
"""Headers that tell where a body ends."""


class Answer(NamedTuple):
    """A whole response.

    Attributes:
        status: Its code.
        body: Its bytes.
    """

    status: int
    body: bytes


class ConnectionClosed(BackendUnavailable):
    """The connection was closed before an answer began."""


class Connection(asyncio.Protocol):
    """A connection on which at most one exchange is under way."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: list[bytes] = []
        self._received = 0
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

    async def exchange(self, request: bytes) -> Answer:
        """Send a request and wait for its whole response. Cancelling closes the connection.

        Args:
            request: All of it, for one write: a small body behind its head in a packet of its own would wait for the
                head's receipt.

        Raises:
            ConnectionClosed: The connection was closed before a response began.
            BackendUnavailable: The response broke off, or is no HTTP.
            DeadlineExceeded: :meth:`expire` was called.
        """
        if self._transport is None or self._transport.is_closing():
            raise closed_early(None)
        self._begun = self._headed = False
        self._received = 0
        self._answer = asyncio.get_running_loop().create_future()
        try:
            self._transport.write(request)
            return await self._answer
        except BaseException:
            self.close()
            raise
        finally:
            self._answer = None

    def expire(self, seconds: float) -> None:
        """Break off the exchange that is under way: ``seconds`` is what it was given."""
        self._fail(late(seconds))

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
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(broken_off(f"it is no HTTP: {error}"))
        except httptools.HttpParserUpgrade:
            self._fail(broken_off("it goes over to another protocol"))
        if self._received > (MAX_ANSWER if self._headed else MAX_HEAD):
            what, limit = ("it", MAX_ANSWER) if self._headed else ("its headers", MAX_HEAD)
            self._fail(broken_off(f"{what} took more than {limit:,} bytes"))

    def connection_lost(self, exc: Exception | None) -> None:
        """End the exchange that is under way: with its answer, where that was to last until the connection's end."""
        if self._answer is not None and not self._answer.done():
            if not self._begun:
                self._fail(closed_early(exc))
            elif exc is None and self._headed and not self._sized and self._parser.get_status_code() >= FINAL:
                self.on_message_complete()
            else:
                self._fail(broken_off(f"the connection was closed in the middle{of(exc)}"))
        # The parser knows this connection as well: in a circle, what has come would wait for a collection.
        del self._parser

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Begin an answer. A second one, which nobody asked for, ends the connection."""
        self._chunks, self._headed, self._sized = [], False, False
        if self._answer is None or self._answer.done():
            self.close()

    def on_header(self, name: bytes, _value: bytes) -> None:
        """Note whether the body's end is told."""
        if name.lower() in SIZES:
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
            self._headed = False
            return
        keeps = self._parser.should_keep_alive()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Answer(status, b"".join(self._chunks)))
        self._chunks = []
        # A response that overtakes the end of its request leaves the rest of it in the way of the next one.
        if not keeps or (self._transport is not None and self._transport.get_write_buffer_size()):
            self.close()

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
        self.close()


def closed_early(cause: Exception | None) -> ConnectionClosed:
    """The error of a connection that was closed before a response began."""
    return ConnectionClosed(f"SGLang closed the connection without an answer{of(cause)}")


def broken_off(why: str) -> BackendUnavailable:
    """The error of a response that has begun and does not end."""
    return BackendUnavailable(f"SGLang broke off its answer: {why}")


def late(seconds: float) -> DeadlineExceeded:
    """The error of an exchange that took longer than it was given."""
    return DeadlineExceeded(f"SGLang did not answer within {seconds:g} s")


def of(cause: Exception | None) -> str:
    """What the system says of a lost connection."""
    return "" if cause is None else f": {cause or type(cause).__name__}"
