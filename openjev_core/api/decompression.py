"""Content codings of request bodies, undone while they stream, never further than a limit.

Each decoder is asked for a bounded amount of output at a time, so that what a body expands to costs no memory.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from openjev_core.errors import MalformedBody, UnsupportedBody

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STEP = 64 * 1024
"""Most bytes that one step of a decoder puts out."""

MAX_MEMBERS = 1024
"""Most gzip members or zstd frames in one body. Empty ones expand to nothing, so that the limit on bytes does not
bound the work they make."""

ZSTD_WINDOW_LOG = 23
"""Largest zstd window, 8 MiB: what RFC 9659 obliges a recipient to accept over HTTP, and no more."""


class Decoder(Protocol):
    """The part of the standard library's incremental decompressors that is used here."""

    @property
    def eof(self) -> bool:
        """Whether the member has ended."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What follows the member's end."""
        ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """At most ``max_length`` bytes more; input that was not needed yet is kept."""
        ...


class Inflate:
    """zlib's decompressor with the pending input kept inside, as zstd's does it."""

    def __init__(self, window_bits: int) -> None:
        self._inflate = zlib.decompressobj(window_bits)

    @property
    def eof(self) -> bool:
        """Whether the member has ended."""
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        """What follows the member's end."""
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """At most ``max_length`` bytes more."""
        return self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)


def gzip_member(_: bytes) -> Decoder:
    """A decoder for one gzip member."""
    return Inflate(31)


def deflate_stream(start: bytes) -> Decoder:
    """A decoder for ``deflate``: zlib's format, as the standard says, or bare deflate, as many clients send it."""
    is_zlib = len(start) >= 2 and start[0] & 0x0F == 8 and int.from_bytes(start[:2]) % 31 == 0  # noqa: PLR2004 - RFC 1950
    return Inflate(15 if is_zlib else -15)


def zstd_frame(_: bytes) -> Decoder:
    """A decoder for one zstd frame."""
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG}
    decoder: Decoder = zstd.ZstdDecompressor(options=options)
    return decoder


Start = Callable[[bytes], Decoder]

CODINGS: dict[str, tuple[Start, bool]] = {
    "zstd": (zstd_frame, True),
    "gzip": (gzip_member, True),
    "x-gzip": (gzip_member, True),
    "deflate": (deflate_stream, False),
}
"""Content coding to its first decoder, and whether several members may follow one another."""

ERRORS: tuple[type[Exception], ...] = (zlib.error, zstd.ZstdError, EOFError)


class Decompression:
    """One body's content coding, undone.

    Args:
        coding: A key of :data:`CODINGS`.
    """

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._start, self._several = CODINGS[coding]
        self._decoder: Decoder | None = None
        self._held = b""
        self._members = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What ``data`` adds to the decompressed body, in pieces of at most :data:`STEP` bytes.

        Raises:
            MalformedBody: It is not of this coding.
        """
        pending = self._held + data
        self._held = b""
        while True:
            if self._decoder is None or (self._decoder.eof and pending):
                # Two bytes tell a zlib header from bare deflate.
                if len(pending) < 2:  # noqa: PLR2004
                    self._held = pending
                    return
                self._decoder = self._next_member(pending)
            try:
                piece = self._decoder.decompress(pending, STEP)
            except ERRORS as error:
                raise MalformedBody(f"the body is no valid {self._coding}: {error}") from None
            pending = self._decoder.unused_data if self._decoder.eof else b""
            if piece:
                yield piece
            if not pending and (self._decoder.eof or not piece):
                return

    def finish(self) -> None:
        """Check that the body ended where its coding says.

        Raises:
            MalformedBody: It was cut short.
        """
        if self._held or self._decoder is None or not self._decoder.eof:
            raise MalformedBody(f"the body is no whole {self._coding}: it ends too early; was it cut short?")

    def _next_member(self, start: bytes) -> Decoder:
        self._members += 1
        if self._members > 1 and not self._several:
            raise MalformedBody(f"the body goes on after the end of its {self._coding} data")
        if self._members > MAX_MEMBERS:
            raise MalformedBody(f"the body is made of more than {MAX_MEMBERS} {self._coding} members; send it as one")
        return self._start(start)


def decompression_of(content_encoding: str) -> Decompression | None:
    """What undoes a Content-Encoding header; ``None`` for identity.

    Raises:
        UnsupportedBody: A coding that is not read, or several.
    """
    codings = [word.strip().lower() for word in content_encoding.split(",")]
    codings = [coding for coding in codings if coding not in ("", "identity")]
    if not codings:
        return None
    if len(codings) > 1 or codings[0] not in CODINGS:
        raise UnsupportedBody(
            f"content-encoding {content_encoding[:80]!r} is not read; send one of zstd, gzip, deflate, identity"
        )
    return Decompression(codings[0])
