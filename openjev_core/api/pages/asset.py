"""Static content over HTTP: conditional requests, compression, caching."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from functools import cached_property
from hashlib import sha256

from attrs import frozen

from openjev_core.api.exchange import Exchange, Header, Reply
from openjev_core.api.incoming import Incoming

REVALIDATE = b"no-cache"
"""Kept by browsers, and asked for again each time by its ETag."""

IMMUTABLE = b"public, max-age=31536000, immutable"
"""Never asked for again: for paths that change whenever their content does."""

MEDIA_TYPES = {
    ".css": b"text/css; charset=utf-8",
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}

WORTH_COMPRESSING = 1024
"""Bytes from which compressing pays for its headers."""


@frozen
class Representation:
    """One form of an asset.

    Attributes:
        body: Its bytes, as they leave.
        headers: Its content coding, if any, and its entity tag.
    """

    body: bytes
    headers: tuple[Header, ...]
    etag: bytes


class Asset:
    """A handler that gives out one file. What it holds is read on the first request for it.

    Args:
        suffix: The file's, which tells its media type: a key of :data:`MEDIA_TYPES`.
        read: Reads the file.
        caching: The value of ``Cache-Control``.
        headers: Further headers.
    """

    def __init__(
        self, suffix: str, read: Callable[[], bytes], *, caching: bytes, headers: tuple[Header, ...] = ()
    ) -> None:
        self._read = read
        self._headers: tuple[Header, ...] = (
            (b"content-type", MEDIA_TYPES[suffix]),
            (b"cache-control", caching),
            (b"vary", b"accept-encoding"),
            (b"x-content-type-options", b"nosniff"),
            *headers,
        )

    async def __call__(self, exchange: Exchange, _incoming: Incoming) -> Reply:
        """The file, compressed for those who take it so; 304 for those who have it."""
        plain, compressed = await asyncio.to_thread(lambda: self._representations)
        chosen = compressed if takes_gzip(exchange.headers.get(b"accept-encoding", b"")) else plain
        headers = (*self._headers, *chosen.headers)
        if has_it(exchange.headers.get(b"if-none-match", b""), chosen.etag):
            return Reply(304, b"", headers)
        return Reply(200, chosen.body, headers)

    @cached_property
    def _representations(self) -> tuple[Representation, Representation]:
        body = self._read()
        digest = sha256(body).hexdigest()[:32].encode()
        plain = Representation(body, ((b"etag", b'"%s"' % digest),), b'"%s"' % digest)
        if len(body) < WORTH_COMPRESSING:
            return plain, plain
        # Without a time stamp the bytes, and so the tag's promise, are the same in every process.
        packed = gzip.compress(body, compresslevel=6, mtime=0)
        etag = b'"%s-gzip"' % digest
        return plain, Representation(packed, ((b"etag", etag), (b"content-encoding", b"gzip")), etag)


def takes_gzip(accept_encoding: bytes) -> bool:
    """Whether a client takes gzip. One that says so with a weight of 0 does not."""
    for coding in accept_encoding.lower().split(b","):
        name, _, parameters = coding.partition(b";")
        if name.strip() in (b"gzip", b"x-gzip"):
            return parameters.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


def has_it(if_none_match: bytes, etag: bytes) -> bool:
    """Whether an If-None-Match header names this entity tag, compared weakly as the standard says."""
    tags = [tag.strip().removeprefix(b"W/") for tag in if_none_match.split(b",")]
    return etag in tags or b"*" in tags
