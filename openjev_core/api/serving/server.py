"""Listening by hypercorn, and a stop that lets evaluations finish."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from fastapi import FastAPI
from hypercorn.asyncio import serve as serve_app
from hypercorn.config import Config

from openjev_core.api.running import Running
from openjev_core.api.serving.connections import MAX_CONNECTIONS, Connections
from openjev_core.errors import SettingsError, StartupError
from openjev_core.settings import Settings

BACKLOG = 1024
MAX_HEAD_BYTES = 32 * 1024
"""Request line and headers, together; more is a 431."""

FAREWELL_SECONDS = 3.0
"""How long the last responses may take to leave, and clients of TLS to say goodbye, which idle ones do not."""

EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE})

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
        # The system hands both on to every connection. The first ends one whose client's machine is gone; the second,
        # which Linux has, one whose client takes nothing of its response for so long.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, max(1000, int(settings.body_timeout * 1000)))
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


def server_config(settings: Settings) -> Config:
    """The configuration of hypercorn, without the address.

    Raises:
        SettingsError: The TLS settings are wrong.
    """
    config = Config()
    config.errorlog = logging.getLogger("openjev.server.hypercorn")
    config.errorlog.setLevel(logging.WARNING)  # below that it tells addresses, which the announcement has told
    config.include_server_header = False
    config.backlog = BACKLOG
    config.h11_max_incomplete_size = MAX_HEAD_BYTES
    # How long a connection may idle between requests, how long the head of a request may take, and how long hypercorn
    # holds an idle connection that its client has closed. Its `read_timeout` would count while an evaluation runs, too.
    config.keep_alive_timeout = settings.keep_alive
    config.ssl_handshake_timeout = settings.body_timeout
    # hypercorn cancels after this time what a stop has left running. `serve` ends all of it earlier, with a response.
    config.graceful_timeout = settings.grace_period + FAREWELL_SECONDS
    # hypercorn ends a whole HTTP/2 connection, with every evaluation on it, by a KeyError when bytes arrive for a
    # stream that it has answered, and by a UnicodeDecodeError when a path is not ASCII.
    config.alpn_protocols = ["http/1.1"]
    config.certfile, config.keyfile = settings.certfile, settings.keyfile
    check_tls(config, settings)
    return config


def check_tls(config: Config, settings: Settings) -> None:
    """Refuse a certificate or a key that cannot be used, before anything listens."""
    if (settings.certfile is None) != (settings.keyfile is None):
        given, missing = ("CERTFILE", "KEYFILE") if settings.certfile else ("KEYFILE", "CERTFILE")
        raise SettingsError(f"OPENJEV_{given} is set and OPENJEV_{missing} is not; TLS needs both")
    for name, path in (("CERTFILE", settings.certfile), ("KEYFILE", settings.keyfile)):
        if path is not None and not Path(path).is_file():
            raise SettingsError(f"OPENJEV_{name}: expected a PEM file, found none at {path!r}")
    try:
        config.create_ssl_context()
    except ssl.SSLError as error:
        raise SettingsError(
            f"OPENJEV_CERTFILE and OPENJEV_KEYFILE: expected a certificate and its key as PEM files, found "
            f"{settings.certfile!r} and {settings.keyfile!r}: {error.reason or error}"
        ) from None


async def serve(
    app: FastAPI,
    settings: Settings,
    sock: socket.socket,
    stop: asyncio.Event,
    started: Callable[[], None] = lambda: None,
) -> None:
    """Serve an application until ``stop`` is set; then let evaluations finish for the grace period, and end the rest.

    Args:
        app: From :func:`openjev_core.api.app.create_app`.
        settings: TLS, time limits, grace period.
        sock: From :func:`bound_socket`. It is closed when the serving ends.
        stop: Ends the serving.
        started: Called once connections are accepted.

    Raises:
        SettingsError: The TLS settings are wrong.
    """
    running: Running = app.state.running
    config = server_config(settings)
    sock.listen(BACKLOG)  # what connects from here on waits for hypercorn
    started()
    config.bind = [f"fd://{sock.detach()}"]
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(report)
    app.state.connections = Connections(MAX_CONNECTIONS, running.working)
    app.state.connections.bound_servers(loop)
    serving = asyncio.create_task(serve_app(cast("Any", app), config, shutdown_trigger=stop.wait, mode="asgi"))
    stopped = asyncio.create_task(stop.wait())
    watch = asyncio.create_task(watch_descriptors())
    await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    watch.cancel()
    if not stop.is_set():
        await serving  # it failed: this raises the reason
    if running:
        logger.info("stopping: %d requests may run on for %g s", len(running), settings.grace_period)
    await running.finish(settings.grace_period)
    await asyncio.wait((serving,), timeout=FAREWELL_SECONDS)
    if serving.done() and (error := serving.exception()):
        report(loop, {"message": "a connection failed while the server stopped", "exception": error})
    elif serving.cancel():  # connections are left whose clients do not say goodbye
        serving.add_done_callback(lambda done: done.cancelled() or done.exception())  # what it says of that is no news
        await asyncio.wait((serving,), timeout=FAREWELL_SECONDS)


async def watch_descriptors() -> None:
    """Log, once a minute at most, that no file descriptor is left for another connection.

    Nothing else would: uvloop closes a connection at once when it has no descriptor for it.
    """
    while True:
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            if error.errno in EXHAUSTED:
                logger.error("no file descriptor is left, so connections are refused; raise the limit (ulimit -n)")  # noqa: TRY400 - nothing more is known
                await asyncio.sleep(59)
        await asyncio.sleep(1)


def report(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what no coroutine has caught, in one line without anything that a client has sent.

    A hostile client may trip a protocol library; one connection ends.
    """
    error = context.get("exception")
    if isinstance(error, asyncio.CancelledError) or (isinstance(error, OSError) and error.errno in EXHAUSTED):
        return  # a connection that the stop ended; :func:`watch_descriptors` reports the other
    kinds = sorted({type(leaf).__name__ for leaf in leaves(error)})
    logger.warning("%s: %s", context["message"], ", ".join(kinds))


def leaves(error: BaseException | None) -> Iterator[BaseException]:
    """The exceptions in a group of groups; nothing for ``None``."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    elif error is not None:
        yield error
