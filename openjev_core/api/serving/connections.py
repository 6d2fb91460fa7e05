"""A bound on the connections that are open at once, whatever their clients do on them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from typing import Any

from attrs import define, field

MAX_CONNECTIONS = 768
"""A connection takes up to 70 KB before its request is whole: 32 KiB of headers, twice. And the usual 1,024 file
descriptors of a process leave some for the backend."""

LOG_SECONDS = 60.0

logger = logging.getLogger("openjev.server")

Peer = tuple[str, int]
"""Address and port at the other end."""


@define(eq=False)
class Connections:
    """The open connections of a server.

    When there is one more than it may hold, the oldest is closed whose request is not being worked on: one that idles,
    or whose request takes its time to arrive. So slow clients keep nobody out.

    Attributes:
        most: Upper bound on them.
        working: The peers whose requests are being worked on.
        open: Peer to its connection, the oldest first.
    """

    most: int
    working: Collection[Peer]
    open: dict[Peer, asyncio.Transport] = field(factory=dict)
    _logged_at: float = -LOG_SECONDS

    def add(self, peer: Peer, transport: asyncio.Transport) -> None:
        """Add a connection, and close another where there are too many."""
        self.open[peer] = transport
        if len(self.open) <= self.most:
            return
        if time.monotonic() - self._logged_at >= LOG_SECONDS:
            self._logged_at = time.monotonic()
            logger.warning("%d connections are open, so those that have waited longest are closed", self.most)
        waiting = next(one for one in self.open if one not in self.working)  # the new one, if no other
        self.open.pop(waiting).abort()

    def bound_servers(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hold the servers that are opened on a loop from now on to the bound.

        hypercorn opens its own by ``create_server``, and shows nobody its connections.
        """
        create = loop.create_server

        async def create_bounded(factory: Callable[[], asyncio.Protocol], *args: Any, **options: Any) -> asyncio.Server:
            return await create(lambda: Counted(factory(), self), *args, **options)

        loop.create_server = create_bounded  # type: ignore[method-assign, assignment]


class Counted(asyncio.Protocol):
    """A connection's protocol, which tells of its beginning and its end."""

    def __init__(self, inner: asyncio.Protocol, connections: Connections) -> None:
        self._inner = inner
        self._connections = connections
        self._peer: Peer = ("", 0)
        self.data_received = inner.data_received  # type: ignore[method-assign]
        self.eof_received = inner.eof_received  # type: ignore[method-assign]
        self.pause_writing = inner.pause_writing  # type: ignore[method-assign]
        self.resume_writing = inner.resume_writing  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._inner.connection_made(transport)
        if isinstance(peer := transport.get_extra_info("peername"), tuple):
            self._peer = peer[:2]
            self._connections.add(self._peer, transport)  # type: ignore[arg-type] # transports of servers can be aborted

    def connection_lost(self, error: Exception | None) -> None:
        """The connection has ended."""
        self._connections.open.pop(self._peer, None)
        self._inner.connection_lost(error)
