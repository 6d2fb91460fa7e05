"""The bytes of one request as they arrive, and the moment when its client goes away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from openjev_core.api.exchange import Receive

DRAIN_BYTES = 64 * 1024 * 1024
DRAIN_SECONDS = 2.0


class ClientGone(Exception):
    """The client closed its connection or stream. There is nobody to answer."""


class Incoming:
    """The request's body, once, in order."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether the whole body has arrived."""
        return self._ended

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body's pieces as they arrive.

        Raises:
            ClientGone: The client went away before the end.
        """
        while not self._ended:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._ended = True
                raise ClientGone
            if not message.get("more_body", False):
                self._ended = True
            if body := message.get("body", b""):
                yield body

    async def drain(self) -> None:
        """Read on and discard, within bounds, so that a client that is still sending gets to read its response.

        A connection that is closed with unread bytes is reset, and a reset overtakes the response on its way.
        """
        discarded = 0
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                async for chunk in self.chunks():
                    discarded += len(chunk)
                    if discarded > DRAIN_BYTES:
                        return
        except (TimeoutError, ClientGone):
            return

    async def hang_up(self) -> None:
        """Return when the client has gone. Only after the body's end."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
