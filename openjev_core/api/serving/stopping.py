"""What SIGTERM and SIGINT do to a process: end it while it starts, let it finish what runs once it serves."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def leave() -> NoReturn:
    """End this process now, with the status of a normal stop.

    Nothing else ends one whose thread is loading a model: Python waits for its threads, and a load cannot be broken
    off.
    """
    for stream in (sys.stdout, sys.stderr):
        # A handler may have interrupted a write to the very stream, which cannot be flushed then.
        with suppress(OSError, ValueError, RuntimeError):
            stream.flush()
    os._exit(0)


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
