"""Static content over HTTP: conditional requests, compression, caching."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Mapping
from functools import cached_property
from hashlib import sha256

from attrs import frozen
from starlette.requests import Request
from starlette.responses import Response

from openjev_core.api.exchange import joined
from openjev_core.api.responses import NO_SNIFFING

REVALIDATE = "no-cache"
"""Browsers keep it, and ask each time whether its ETag is still the same."""

IMMUTABLE = "public, max-age=31536000, immutable"
"""Browsers keep it and never ask again: for paths that change whenever their content does."""

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}

WORTH_COMPRESSING = 1024
"""Bytes from which compressing pays for its headers."""


@frozen
class Representation:
    """One form of an asset.

    Attributes:
        body: Its bytes, as they leave.
        headers: Its entity tag, and its content coding if it has one.
    """

    body: bytes
    headers: Mapping[str, str]


class Asset:
    """One file to give out. It is read on the first request for it, and compressed once.

    Args:
        suffix: The file's, which tells its media type: a key of :data:`MEDIA_TYPES`.
        read: Reads the file.
        caching: The value of ``Cache-Control``.
        headers: Further headers.
    """

    def __init__(
        self, suffix: str, read: Callable[[], bytes], *, caching: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self._read = read
        self._headers = {
            "content-type": MEDIA_TYPES[suffix],
            "cache-control": caching,
            "vary": "accept-encoding",
            **NO_SNIFFING,
            **(headers or {}),
        }

    async def response(self, request: Request) -> Response:
        """The file, compressed for clients that accept that; 304 for clients that have it."""
        plain, compressed = await asyncio.to_thread(lambda: self._representations)
        chosen = compressed if accepts_gzip(joined(request.headers, "accept-encoding")) else plain
        headers = {**self._headers, **chosen.headers}
        if names_tag(joined(request.headers, "if-none-match"), chosen.headers["etag"]):
            return Response(status_code=304, headers=headers)
        return Response(chosen.body, headers=headers)

    @cached_property
    def _representations(self) -> tuple[Representation, Representation]:
        body = self._read()
        digest = sha256(body).hexdigest()[:32]
        plain = Representation(body, {"etag": f'"{digest}"'})
        if len(body) < WORTH_COMPRESSING:
            return plain, plain
        # Without a time stamp the bytes, and so the tag's promise, are the same in every process.
        packed = gzip.compress(body, compresslevel=6, mtime=0)
        return plain, Representation(packed, {"etag": f'"{digest}-gzip"', "content-encoding": "gzip"})


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header accepts gzip. A weight of 0 refuses it."""
    for coding in accept_encoding.lower().split(","):
        name, _, parameters = coding.partition(";")
        if name.strip() in ("gzip", "x-gzip"):
            return parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def names_tag(if_none_match: str, etag: str) -> bool:
    """Whether an If-None-Match header names this entity tag, compared weakly as the standard says."""
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in tags or "*" in tags
