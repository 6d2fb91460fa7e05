"""The guard before a JSON body: its media type, its coding, its size and the time that it takes to arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from openjev_core.api.decompression import Decompression, decompression_of
from openjev_core.api.incoming import Incoming
from openjev_core.errors import BodyTimeout, BodyTooLarge, UnsupportedBody


async def read_body(incoming: Incoming, headers: Mapping[bytes, bytes], *, limit: int, seconds: float) -> bytes:
    """The whole body, decompressed.

    Args:
        incoming: Where it comes from.
        headers: The request's, lower-case names.
        limit: Most bytes, counted after decompression.
        seconds: How long it may take to arrive.

    Raises:
        UnsupportedBody: Its media type or coding is not read.
        BodyTooLarge: It is over the limit; found from its headers where they tell, else when the limit is passed.
        MalformedBody: It does not decompress.
        BodyTimeout: It did not arrive in time.
        ClientGone: The client went away.
    """
    media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media_type.startswith(b"multipart/"):
        raise UnsupportedBody("multipart bodies are not read, since images are not; send application/json")
    decompression = decompression_of(headers.get(b"content-encoding", b"").decode("latin-1"))
    # What does not compress grows a little instead: deflate adds 5 bytes to each 16 KiB, and a header.
    wire_limit = limit if decompression is None else limit + limit // 1000 + 1024
    length = headers.get(b"content-length", b"")
    if length.isdigit() and (len(length) > 15 or int(length) > wire_limit):  # noqa: PLR2004 - no int of hostile length
        raise too_large(limit)
    try:
        async with asyncio.timeout(seconds):
            return await collect(incoming, decompression, limit, wire_limit)
    except TimeoutError:
        raise BodyTimeout(f"the body did not arrive within {seconds:g} seconds") from None


async def collect(incoming: Incoming, decompression: Decompression | None, limit: int, wire_limit: int) -> bytes:
    """The body as one string of bytes; see :func:`read_body`."""
    received = 0
    size = 0
    pieces: list[bytes] = []
    async for chunk in incoming.chunks():
        received += len(chunk)
        if received > wire_limit:
            raise too_large(limit)
        for piece in (chunk,) if decompression is None else decompression.feed(chunk):
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            pieces.append(piece)
    if decompression is not None:
        decompression.finish()
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def too_large(limit: int) -> BodyTooLarge:
    """The error of a body over the limit."""
    return BodyTooLarge(
        f"the body is over the limit of {limit:,} bytes, counted after decompression (OPENJEV_MAX_BODY_BYTES)"
    )
