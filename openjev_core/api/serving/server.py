"""Listening, and a stop that lets evaluations finish."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import cast

from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework

from openjev_core.api.app import OpenJevApp
from openjev_core.api.serving.connection import Connection, Patience
from openjev_core.api.serving.server_config import server_config
from openjev_core.errors import StartupError
from openjev_core.settings import Settings

BACKLOG = 1024
FAREWELL_SECONDS = 3.0
"""How long the refusals of evaluations that a stop cut short may take to leave."""

TLS_FAREWELL_SECONDS = 1.0
"""How long a closed TLS connection waits for the client's own farewell, which an idle client does not send."""

logger = logging.getLogger("openjev.server")


def bound_socket(settings: Settings) -> socket.socket:
    """A socket on the configured address, not listening yet, so that a taken port shows before a model is loaded.

    Raises:
        StartupError: The address cannot be had.
    """
    host = settings.host.strip("[]")
    try:
        family = socket.getaddrinfo(host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.bind((host, settings.port))
    except OSError as error:
        raise StartupError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror or error}; "
            "choose another with --host and --port (port 0 takes a free one)"
        ) from None
    sock.setblocking(False)
    return sock


def address_of(sock: socket.socket, settings: Settings) -> str:
    """The URL of a bound socket."""
    host, port = sock.getsockname()[:2]
    scheme = "https" if settings.certfile else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


class Server:
    """Serves one application on one socket.

    Args:
        app: What answers.
        settings: TLS, time limits, grace period.
        sock: From :func:`bound_socket`.

    Raises:
        SettingsError: The TLS settings are wrong.
    """

    def __init__(self, app: OpenJevApp, settings: Settings, sock: socket.socket) -> None:
        self._app = app
        self._settings = settings
        self._sock = sock
        self._wrapper = ASGIWrapper(cast("ASGIFramework", app))
        self._config = server_config(settings)
        self._context = WorkerContext(None)
        self._patience = Patience(
            idle=settings.keep_alive, head=settings.body_timeout, write=max(settings.body_timeout, 1.0)
        )
        self._connections: dict[asyncio.Task[None], Connection] = {}

    async def serve(self, stop: asyncio.Event, started: Callable[[], None] = lambda: None) -> None:
        """Serve until ``stop`` is set, then let evaluations finish for the grace period, and end the rest.

        Args:
            stop: Ends the serving.
            started: Called once connections are accepted.
        """
        ssl_context = self._config.create_ssl_context()
        server = await asyncio.start_server(
            self._accept,
            sock=self._sock,
            backlog=BACKLOG,
            ssl=ssl_context,
            ssl_handshake_timeout=None if ssl_context is None else self._settings.body_timeout,
            ssl_shutdown_timeout=None if ssl_context is None else TLS_FAREWELL_SECONDS,
        )
        try:
            started()
            await stop.wait()
        finally:
            server.close()
            await self._finish()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(self._wrapper, self._config, self._context, reader, writer, patience=self._patience)
        task = asyncio.current_task()
        assert task is not None, "asyncio runs this as a task"  # noqa: S101 - for the type checker
        self._connections[task] = connection
        try:
            await connection.run()
        except asyncio.CancelledError:
            pass  # by `_finish`; asyncio's streams would report a cancelled task as an error
        finally:
            del self._connections[task]

    async def _finish(self) -> None:
        await self._context.terminated.set()
        for connection in self._connections.values():
            connection.stop()
        if running := len(self._app.running):
            logger.info("stopping: %d evaluations may run on for %g s", running, self._settings.grace_period)
        await self._wait(self._settings.grace_period)
        if self._connections:
            self._app.running.stop()
            await self._wait(FAREWELL_SECONDS)
        for connection in self._connections.values():
            connection.abort()
        await self._wait(FAREWELL_SECONDS)
        for task in self._connections:
            task.cancel()

    async def _wait(self, seconds: float) -> None:
        if self._connections:
            await asyncio.wait(tuple(self._connections), timeout=seconds)
