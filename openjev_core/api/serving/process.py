"""A serving process, from settings to exit, and what SIGTERM and SIGINT do to it.

While it starts they end it; once it serves they let it finish what runs.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from openjev_core.api.app import create_app
from openjev_core.api.serving.server import address_of, bound_socket, serve
from openjev_core.api.serving.workers import run_workers, stop_with_parent
from openjev_core.ending import leave
from openjev_core.engine.engine import Engine
from openjev_core.engine.opening import open_engine
from openjev_core.engine_type import Progress
from openjev_core.errors import StartupError
from openjev_core.plugins.registry import Registry
from openjev_core.settings import Settings, is_loopback

Announce = Callable[[Engine, str], None]
"""Called once, when the server accepts requests, with the engine and the URL."""

GC_THRESHOLDS = 20_000, 20, 50
"""New objects, and collections of each generation, before the next one is searched for cycles. A request of 32
questions makes some thousand objects and no cycle. Python's own 700 has each of them searched several times: 4% of the
CPU of a request of 3 questions."""

SWITCH_SECONDS = 0.0005
"""Seconds after which a thread that works lets another have Python's lock, where one waits. The event loop waits for it
after each look at its sockets: with Python's own 5 ms, two chats of 7,000 messages at work had it wait for 200 to 1,400
ms in all until it answered, and now for 30 to 500; the chats take no longer."""

SIGNALS = (signal.SIGTERM, signal.SIGINT)

logger = logging.getLogger("openjev.server")

Prepare = Callable[[Settings], None]
"""Called first in each worker process, to set up logging there as it is here."""


def silent(*_: object) -> None:
    """Say nothing."""


def run_server(
    settings: Settings,
    *,
    registry: Registry | None = None,
    progress: Progress = silent,
    announce: Announce = silent,
    prepare: Prepare = silent,
) -> None:
    """Serve until SIGTERM or SIGINT, here or in worker processes; returns after a graceful stop.

    Args:
        settings: What to serve, where and how.
        registry: The question types; the installed ones when ``None``. Workers load the installed ones themselves.
        progress: Takes lines on what the start is waiting for.
        announce: See :data:`Announce`. Importable by name where there are workers; the first of them calls it.
        prepare: See :data:`Prepare`. Importable by name.

    Raises:
        StartupError: The address is taken, the engine does not start, or a worker ended by itself.
        SettingsError: A setting of the server is wrong.
    """
    with bound_socket(settings) as sock:
        if settings.workers > 1:
            run_workers(settings, sock, partial(serve_in_worker, announce=announce, prepare=prepare))
        else:
            run_on_loop(serve_alone(settings, sock, registry=registry, progress=progress, announce=announce))


def serve_in_worker(
    settings: Settings, sock: socket.socket, number: int, *, announce: Announce, prepare: Prepare
) -> None:
    """What a worker process does. Exits with 1 when it cannot start, having said why."""
    prepare(settings)
    first = number == 0
    try:
        run_on_loop(
            serve_alone(
                settings,
                sock,
                registry=None,
                progress=logger.info if first else silent,
                announce=announce if first else silent,
            )
        )
    except StartupError as error:
        logger.error("worker %d does not start: %s", number, error)  # noqa: TRY400 - its message says it all
        sys.exit(1)


def run_on_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run ``main`` on uvloop where there is one."""
    if sys.platform == "win32":
        asyncio.run(main)
        return
    import uvloop  # noqa: PLC0415 - there is none for Windows

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


async def serve_alone(
    settings: Settings, sock: socket.socket, *, registry: Registry | None, progress: Progress, announce: Announce
) -> None:
    """Open an engine and serve it on a bound socket until a signal, or until the parent process is gone.

    Before it serves, either ends the process at once.
    """
    stop = asyncio.Event()
    with ExitStack() as signals:
        signals.enter_context(leave_on_signals())

        def accepts(engine: Engine, url: str) -> None:
            signals.enter_context(stop_on_signals(stop))
            announce(engine, url)

        stop_with_parent(stop)
        if not await serve_socket(settings, sock, registry=registry, progress=progress, announce=accepts, stop=stop):
            leave()


async def serve_socket(
    settings: Settings,
    sock: socket.socket,
    *,
    registry: Registry | None,
    progress: Progress,
    announce: Announce,
    stop: asyncio.Event,
) -> bool:
    """Open an engine and serve it on a bound socket until ``stop`` is set.

    Returns:
        Whether it served. Where not, a thread may still be loading a model, and :func:`leave` does not wait for it.
    """
    accepting = asyncio.Event()

    async def open_and_serve() -> None:
        began = time.monotonic()
        async with open_engine(settings, registry=registry, progress=progress) as engine:
            app = create_app(engine, startup_seconds=time.monotonic() - began)
            url = address_of(sock, settings)
            warn_if_open_to_all(settings, url)

            # Loading has made 60,000 objects that live as long as the process. To go through them holds the event loop
            # for tens of milliseconds.
            gc.collect()
            gc.freeze()
            gc.set_threshold(*GC_THRESHOLDS)
            sys.setswitchinterval(SWITCH_SECONDS)

            def started() -> None:
                accepting.set()
                announce(engine, url)

            await serve(app, settings, sock, stop, started)

    serving = asyncio.create_task(open_and_serve())
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if stop.is_set() and not accepting.is_set():
        serving.cancel()
    with suppress(asyncio.CancelledError):
        await serving
    return accepting.is_set()


def warn_if_open_to_all(settings: Settings, url: str) -> None:
    """Say so when other machines can use the server without a key."""
    if not settings.api_key and not is_loopback(settings.host):
        logger.warning("anyone who reaches %s may use this server: no key is set (OPENJEV_API_KEY)", url)


@contextmanager
def leave_on_signals() -> Iterator[None]:
    """End the process at once on SIGTERM and SIGINT, for as long as the context lasts.

    Python runs these handlers between any two of its steps, so they work where the event loop is held up, too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals belong to the main thread
        return
    previous = {number: signal.signal(number, lambda *_: leave()) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def stop_on_signals(stop: asyncio.Event) -> Iterator[None]:
    """Set ``stop`` on SIGTERM and SIGINT, for as long as the context lasts."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals belong to the main thread
        return
    loop = asyncio.get_running_loop()
    previous = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        try:
            loop.add_signal_handler(number, stop.set)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
    try:
        yield
    finally:
        for number in SIGNALS:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, previous[number])
