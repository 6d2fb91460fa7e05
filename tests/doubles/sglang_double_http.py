"""A small HTTP/1.1 server on asyncio's protocols: what the double needs and no more, at a few microseconds a call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from attrs import define, field

Answer = Callable[[int, bytes, str | None], None]
"""Sends a status, a body and its content type; a call after the connection closed does nothing."""


@define(eq=False)
class HttpRequest:
    """One request, and the means to answer it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: Connection
    on_disconnect: Callable[[], None] | None = None
    """Called when the client hangs up before the answer."""

    def answer(self, status: int, body: bytes = b"", content_type: str | None = "application/json") -> None:
        """Send a response."""
        kind = f"content-type: {content_type}\r\n" if content_type else ""
        reason = HTTPStatus(status).phrase
        head = f"HTTP/1.1 {status} {reason}\r\n{kind}content-length: {len(body)}\r\n\r\n".encode()
        self.connection.finish(self, head + body)

    def answer_partly(self, body: bytes, promised: int) -> None:
        """Send the head and the beginning of a body, then close."""
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {promised}\r\n\r\n".encode()
        self.connection.finish(self, head + body)
        self.connection.close()

    def drop(self) -> None:
        """Close the connection without a word."""
        self.connection.close()


@define(eq=False)
class Connection(asyncio.Protocol):
    """A client's connection: one request at a time."""

    handle: Callable[[HttpRequest], None]
    open: set[Connection]
    transport: asyncio.Transport | None = None
    buffer: bytearray = field(factory=bytearray)
    current: HttpRequest | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the transport."""
        # No check of its class: uvloop's transports are not asyncio's.
        self.transport = transport
        self.open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request in progress, if there is one."""
        self.transport = None
        self.open.discard(self)
        current, self.current = self.current, None
        if current is not None and current.on_disconnect is not None:
            current.on_disconnect()

    def data_received(self, data: bytes) -> None:
        """Collect bytes; start on a request when it is complete."""
        self.buffer += data
        if self.current is None:
            self.next()

    def next(self) -> None:
        """Start on the next complete request in the buffer."""
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        first, *lines = self.buffer[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = int(headers.get("content-length", "0"))
        if len(self.buffer) < end + 4 + size:
            return
        body = bytes(self.buffer[end + 4 : end + 4 + size])
        del self.buffer[: end + 4 + size]
        if not first.endswith("HTTP/1.1"):
            # A router asks with HTTP/2 whether this is a gRPC worker.
            self.close()
            return
        method, path, _ = first.split(" ")
        self.current = HttpRequest(method, path.partition("?")[0], headers, body, self)
        self.handle(self.current)

    def finish(self, request: HttpRequest, data: bytes) -> None:
        """Write a response, unless the client is gone."""
        if self.transport is None or self.current is not request:
            return
        self.current = None
        self.transport.write(data)
        if request.headers.get("connection", "").lower() == "close":
            self.transport.close()
        elif self.buffer:
            self.next()

    def close(self) -> None:
        """Close the connection, after what was written is sent."""
        if self.transport is not None:
            self.transport.close()
