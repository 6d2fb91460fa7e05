"""Connecting that a cancelled caller leaves to end by itself.

uvloop's ``create_connection(sock=...)`` is not safe to cancel: the transport closes the socket's descriptor, the socket
does not know and closes it once more, and by then the number may be another connection's (uvloop issue 738). Clients
that hang up cancel calls at any time, so connections, the API's own included, would break at random, or worse, carry
what was meant for others.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler


class PatientConnector(aiohttp.TCPConnector):
    """aiohttp's connector, whose connecting is never cancelled from outside; its own time limits stay."""

    async def _create_connection(self, *args: Any, **kwargs: Any) -> ResponseHandler:
        connecting = asyncio.create_task(super()._create_connection(*args, **kwargs))
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            connecting.add_done_callback(close_unwanted)
            raise


def close_unwanted(connecting: asyncio.Task[ResponseHandler]) -> None:
    """Close a connection that was made for a caller that is gone."""
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().close()
