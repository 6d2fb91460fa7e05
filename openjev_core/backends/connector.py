"""aiohttp's connections with two changes: one with unread bytes is not used again, and none waits to be closed."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import Any

import aiohttp
from aiohttp.connector import Connection


class Connector(aiohttp.TCPConnector):
    """Connections that are used again only while nothing is left on them of the call before."""

    async def connect(self, *args: Any, **options: Any) -> Connection:
        """A kept connection or a new one."""
        connection = await super().connect(*args, **options)
        # An answer that came while a connection was idle would pass for the answer to the next call.
        while connection.protocol is not None and connection.protocol.should_close:
            connection.close()
            connection = await super().connect(*args, **options)
        connection.add_callback(partial(abort_unsent, connection.transport))
        return connection


def abort_unsent(transport: asyncio.Transport | None) -> None:
    """Close a connection at the end of a call whose body has not been sent to its end.

    aiohttp would wait until the server takes the rest, and keep the descriptor until then.
    """
    if transport is not None and transport.get_write_buffer_size():
        transport.abort()


def unconnected_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket for aiohttp to connect."""
    family, kind, protocol, *_ = address
    return UncollectedSocket(family, kind, protocol)


class UncollectedSocket(socket.socket):
    """A socket that is closed by those who use it, and never when it is collected.

    Cancelling uvloop 0.22 while it takes over a connected socket closes the descriptor without a word to the socket,
    which would close it again when it is collected: by then it is another's (uvloop's issue 738).
    """

    def __del__(self) -> None:
        self.detach()
