"""A page whose style elements are made at run time."""

from __future__ import annotations

import secrets

from openjev_core.api.exchange import Exchange, Reply
from openjev_core.api.incoming import Incoming
from openjev_core.api.pages.asset import MEDIA_TYPES
from openjev_core.api.pages.policy import page_headers


class NoncePage:
    """A handler that gives out an HTML page with a fresh nonce each time, in the page and in its policy.

    Args:
        html: The page, with ``{{ nonce }}`` where the nonce goes.
        policy: Its content security policy, with ``{{ nonce }}`` likewise.
    """

    def __init__(self, html: bytes, policy: str) -> None:
        self._html = html
        self._policy = policy

    async def __call__(self, _exchange: Exchange, _incoming: Incoming) -> Reply:
        """The page. A nonce that is used twice is none, so that it must not be kept."""
        nonce = secrets.token_urlsafe(18)
        headers = (
            (b"content-type", MEDIA_TYPES[".html"]),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            *page_headers(self._policy.replace("{{ nonce }}", nonce)),
        )
        return Reply(200, self._html.replace(b"{{ nonce }}", nonce.encode()), headers)
