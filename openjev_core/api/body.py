"""A JSON body on its way in: its media type, its content coding, its size and the time that it takes to arrive.

A compressed body is kept as it arrived until it is worked on. So what a slow client, or one that waits for a place,
makes the server hold is what it has sent, never what that expands to.
"""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import Callable
from functools import partial
from typing import Protocol

from attrs import define, field
from starlette.requests import Request

from openjev_core.api.exchange import joined
from openjev_core.engine.preparation import Body
from openjev_core.errors import BodyTimeout, BodyTooLarge, MalformedBody, Overloaded, UnsupportedBody

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_MEMBERS = 64
"""Most gzip members or zstd frames in one body. The decoders copy what follows a member, so a body of many empty ones
would be copied as often as it has members."""

ZSTD_WINDOW_LOG = 23
"""Largest zstd window, 8 MiB: what RFC 9659 obliges a recipient to accept over HTTP, and no more."""

MOST_TOOL_BYTES = 256 * 1024
"""Bytes of a tool's call, which an agent writes itself. The protocol's library parses it on the event loop."""

REQUEST_BYTES = 64 * 1024
"""What a request costs while it is received, besides its body: its headers, of up to 32 KiB, and the objects that read
it. So the bound on bytes is one on requests, too."""


@define(eq=False)
class Arrival:
    """A request on its way in.

    Attributes:
        limit: Ends the receiving when its time is set.
        taken: The bytes that it takes.
        displaced: True once it had to make room for others.
    """

    limit: asyncio.Timeout
    taken: int = 0
    displaced: bool = False


@define(eq=False)
class Room:
    """The memory that the requests which are being received may take together.

    Where there is none left, the request that has been on its way the longest gives way. So requests that never end
    keep nobody out for long: a whole one arrives in milliseconds.

    Attributes:
        most: Upper bound on the bytes. No request takes as many.
        taken: The bytes that they take now.
        arrivals: What is being received, the longest first.
    """

    most: int
    taken: int = 0
    arrivals: dict[Arrival, None] = field(factory=dict)

    def take(self, arrival: Arrival, count: int) -> None:
        """Take some of the room, whoever has to leave it.

        Raises:
            Overloaded: This request had to.
        """
        if arrival.displaced:
            raise displaced()
        self.arrivals[arrival] = None
        arrival.taken += count
        self.taken += count
        while self.taken > self.most:
            oldest = next(iter(self.arrivals))
            self.leave(oldest)
            oldest.displaced = True
            if not oldest.limit.expired():
                oldest.limit.reschedule(asyncio.get_running_loop().time())

    def leave(self, arrival: Arrival) -> None:
        """Give back what a request takes, once."""
        self.arrivals.pop(arrival, None)
        self.taken -= arrival.taken
        arrival.taken = 0


class Decoder(Protocol):
    """The part of the standard library's incremental decompressors that is used here."""

    @property
    def eof(self) -> bool:
        """True when the member has ended."""
        ...

    @property
    def unused_data(self) -> bytes:
        """The bytes after the member's end."""
        ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """The next bytes, ``max_length`` at most."""
        ...


def zstd_decoder() -> Decoder:
    """A decoder for one zstd frame."""
    decoder: Decoder = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG})
    return decoder


CODINGS: dict[str, tuple[Callable[[], Decoder], int]] = {
    "zstd": (zstd_decoder, MAX_MEMBERS),
    "gzip": (partial(zlib.decompressobj, 31), MAX_MEMBERS),
    "deflate": (partial(zlib.decompressobj, 15), 1),
}
"""Content coding to the maker of a decoder for one member, and to the most members that a body may have."""

MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
"""What compressed data begins with, where that can be no JSON."""


async def read_body(request: Request, room: Room, *, limit: int, seconds: float) -> Body:
    """The whole body of a request: its bytes, or what decompresses it, which may raise as :func:`decompressed`.

    Args:
        request: Its body has not been read yet.
        room: Where the request takes room until its body is whole.
        limit: Most bytes, counted after decompression.
        seconds: How long it may take to arrive.

    Raises:
        UnsupportedBody: Its media type or content coding is not read.
        BodyTooLarge: It is over the limit, by its headers or by what has arrived.
        MalformedBody: It is compressed, and no header says so.
        BodyTimeout: It did not arrive in time.
        Overloaded: It was the longest on its way when there was no room left.
        ClientDisconnect: The client went away.
    """
    if request.headers.get("content-type", "").strip().lower().startswith("multipart/"):
        raise UnsupportedBody("multipart bodies are not read, since images are not; send application/json")
    coding = content_coding(joined(request.headers, "content-encoding"))
    # What does not compress grows a little instead: deflate adds 5 bytes to each 16 KiB, and a header.
    wire_limit = limit if coding is None else limit + limit // 1000 + 1024
    length = request.headers.get("content-length", "")
    if length.isdecimal() and (len(length) > 15 or int(length) > wire_limit):  # noqa: PLR2004 - no int of hostile length
        raise too_large(limit)
    received = bytearray()
    arrival = Arrival(asyncio.timeout(seconds))
    try:
        async with arrival.limit:
            room.take(arrival, REQUEST_BYTES)
            async for piece in request.stream():
                if len(received) + len(piece) > wire_limit:
                    raise too_large(limit)
                room.take(arrival, len(piece))
                received += piece
    except TimeoutError:
        if arrival.displaced:
            raise displaced() from None
        raise BodyTimeout(f"the body did not arrive within {seconds:g} seconds") from None
    finally:
        room.leave(arrival)
    body = bytes(received)
    if coding is not None:
        return partial(decompressed, body, coding, limit)
    if unsaid := next((name for magic, name in MAGIC.items() if body.startswith(magic)), None):
        raise MalformedBody(f"the body is {unsaid} data, and no header says so; send Content-Encoding: {unsaid}")
    return body


def content_coding(content_encoding: str) -> str | None:
    """The one coding that a Content-Encoding header names; ``None`` for identity.

    Raises:
        UnsupportedBody: It names a coding that is not read, or several.
    """
    codings = [word.strip().lower() for word in content_encoding.split(",")]
    # Recipients take the name that gzip had once for it (RFC 9110, 8.4.1.3).
    codings = ["gzip" if coding == "x-gzip" else coding for coding in codings if coding not in ("", "identity")]
    if not codings:
        return None
    if len(codings) > 1 or codings[0] not in CODINGS:
        raise UnsupportedBody(
            f"content-encoding {content_encoding[:80]!r} is not read; send one of zstd, gzip, deflate, identity"
        )
    return codings[0]


def decompressed(data: bytes, coding: str, limit: int) -> bytes:
    """A whole body, decompressed. No more than ``limit`` bytes and one are ever written.

    Args:
        data: The body as it arrived.
        coding: A key of :data:`CODINGS`.
        limit: Most bytes of the result.

    Raises:
        BodyTooLarge: It expands to more.
        MalformedBody: It is not of this coding, is cut short, or goes on after its end.
    """
    if data.lstrip().startswith((b"{", b"[")):
        raise MalformedBody(f"the body is plain JSON, and its header says {coding}; leave Content-Encoding out")
    make_decoder, most = CODINGS[coding]
    members: list[bytes] = []
    room = limit
    while data or not members:
        if len(members) == most:
            raise MalformedBody(
                f"the body goes on after the end of its {coding} data"
                if most == 1
                else f"the body is made of more than {most} {coding} members; send it as one"
            )
        decoder = make_decoder()
        try:
            member = decoder.decompress(data, room + 1)
        except (zlib.error, zstd.ZstdError, EOFError) as error:
            raise MalformedBody(f"the body is no valid {coding}: {error}") from None
        if len(member) > room:
            raise too_large(limit)
        if not decoder.eof:
            raise MalformedBody(f"the body is no whole {coding}: it ends too early; was it cut short?")
        room -= len(member)
        members.append(member)
        data = decoder.unused_data
    return b"".join(members)


def displaced() -> Overloaded:
    """The error of a request that had to make room for others."""
    return Overloaded(
        "this server is receiving as many and as large requests as it can, and yours was the longest on its way; send "
        "it again shortly"
    )


def too_large(limit: int) -> BodyTooLarge:
    """The error of a body over the limit."""
    return BodyTooLarge(
        f"the body is over the limit of {limit:,} bytes, counted after decompression (OPENJEV_MAX_BODY_BYTES; at /mcp "
        f"no more than {MOST_TOOL_BYTES:,})"
    )
