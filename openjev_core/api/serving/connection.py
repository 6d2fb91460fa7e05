"""One accepted connection: the socket on one side, hypercorn's protocol state machines on the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial

from attrs import frozen
from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.typing import AppWrapper, ConnectionState
from hypercorn.utils import parse_socket_addr

from openjev_core.api.serving.http1 import Http1
from openjev_core.api.serving.server_config import ServerConfig

READ_BYTES = 64 * 1024
HIGH_WATER = 64 * 1024
"""Unsent bytes from which a response waits for its client. It is asyncio's own mark, too."""

LINGER_SECONDS = 2.0
"""How long what a refused client still sends is read and discarded. Closing on unread bytes resets the connection, and
the reset would overtake the refusal."""

logger = logging.getLogger("openjev.server")


@frozen(kw_only=True)
class Patience:
    """How long a connection waits, in seconds.

    Attributes:
        idle: For the next request, after one.
        head: For the first request, and for the rest of any request's headers once their first byte has come.
        write: For a client to take the next part of its response.
    """

    idle: float
    head: float
    write: float


class Connection:
    """Serves one connection until either side has had enough.

    Stands where hypercorn has its ``TCPServer``, for what that lacks: time limits on headers and on slow readers,
    refusals that reach the client, and timers that cost no task per request.
    """

    def __init__(
        self,
        app: AppWrapper,
        config: ServerConfig,
        context: WorkerContext,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        patience: Patience,
    ) -> None:
        self._app = app
        self._config = config
        self._context = context
        self._patience = patience
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._idle = True
        self._http2 = False
        self._head_limited = False
        self._lingering = False
        self._protocol: ProtocolWrapper
        self._tasks: TaskGroup

    async def run(self) -> None:
        """Serve the connection; return when it is closed."""
        try:
            async with TaskGroup(self._loop) as self._tasks:
                self._protocol = self._make_protocol()
                try:
                    await self._protocol.initiate()
                    self._set_timer(self._patience.head, self._writer.close)
                    await self._read()
                finally:
                    # However it ended: a protocol that is not told waits for ever to send.
                    await self._protocol.handle(Closed())
        except* OSError:
            pass  # the client's end of the connection is gone
        except* Exception as errors:  # noqa: BLE001 - a hostile stream may trip a protocol library; one connection ends
            kinds = sorted({type(error).__name__ for error in leaves(errors)})
            logger.warning("a connection ended by %s in its protocol", ", ".join(kinds))
        finally:
            self._clear_timer()
            self._writer.transport.abort() if self._lingering else self._writer.close()

    def stop(self) -> None:
        """Close the connection if no request is in progress; otherwise the protocol closes it after the response."""
        if self._idle:
            self._writer.close()

    def abort(self) -> None:
        """Close the connection now. What runs for it is cancelled."""
        self._writer.transport.abort()

    def _make_protocol(self) -> ProtocolWrapper:
        sock = self._writer.get_extra_info("socket")
        tls = self._writer.get_extra_info("ssl_object")
        wrapper = ProtocolWrapper(
            self._app,
            self._config,
            self._context,
            self._tasks,
            ConnectionState({}),
            tls is not None,
            parse_socket_addr(sock.family, sock.getpeername()),
            parse_socket_addr(sock.family, sock.getsockname()),
            self._send,
            tls.selected_alpn_protocol() if tls is not None else "http/1.1",
        )
        if isinstance(plain := wrapper.protocol, H11Protocol):
            wrapper.protocol = Http1(
                plain.app,
                plain.config,
                plain.context,
                plain.task_group,
                plain.connection_state,
                plain.ssl,
                plain.client,
                plain.server,
                plain.send,
                gone=self._writer.is_closing,
            )
        return wrapper

    async def _read(self) -> None:
        while data := await self._reader.read(READ_BYTES):
            if self._lingering:
                continue
            await self._protocol.handle(RawData(data))
            self._limit_head()
        if not self._lingering:
            # The client sends no more. A reply on its way may still be taken, for a while.
            self._set_timer(self._patience.write, self._writer.transport.abort)
            await self._protocol.handle(RawData(b""))

    def _limit_head(self) -> None:
        """After a read: when no request came of it, wait for the rest of its headers, but not for ever."""
        protocol = self._protocol.protocol
        if isinstance(protocol, H2Protocol) and not self._http2:
            self._http2 = True
            self._idle = protocol.idle  # its preface passed for a request at first
            if self._idle:
                self._set_timer(self._patience.head, self._writer.close)
        elif isinstance(protocol, Http1) and self._idle and protocol.head_begun and not self._head_limited:
            self._head_limited = True
            self._set_timer(self._patience.head, partial(self._tasks.spawn, self._refuse_slow_head, protocol))

    async def _refuse_slow_head(self, protocol: Http1) -> None:
        await protocol.refuse(408)
        self._close()

    async def _send(self, event: Event) -> None:
        if isinstance(event, RawData):
            await self._write(event.data)
        elif isinstance(event, Closed):
            self._close()
        elif isinstance(event, Updated):
            self._idle = event.idle
            self._head_limited = False
            if event.idle:
                self._set_timer(self._patience.idle, self._writer.close)
            else:
                self._clear_timer()

    async def _write(self, data: bytes) -> None:
        if self._writer.is_closing():
            return
        self._writer.write(data)
        if self._writer.transport.get_write_buffer_size() <= HIGH_WATER:
            return
        try:
            async with asyncio.timeout(self._patience.write):
                await self._writer.drain()
        except (ConnectionError, TimeoutError):
            self._writer.transport.abort()

    def _close(self) -> None:
        """Close from this side, after what was written has left."""
        protocol = self._protocol.protocol
        if not isinstance(protocol, Http1) or protocol.sender_is_done:
            self._writer.close()
            return
        self._lingering = True
        if self._writer.can_write_eof():
            self._writer.write_eof()
        self._set_timer(LINGER_SECONDS, self._writer.transport.abort)

    def _set_timer(self, seconds: float, action: Callable[[], object]) -> None:
        self._clear_timer()
        self._timer = self._loop.call_later(seconds, action)

    def _clear_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions in a group of groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
