"""Ending a process although threads are left that would keep it: one that loads a model, one that a plugin started."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from types import NoneType
from typing import NoReturn


def leave(code: int = 0) -> NoReturn:
    """End this process now.

    Nothing else ends one whose thread is loading a model: Python waits for its threads, and a load cannot be broken
    off.
    """
    for stream in (sys.stdout, sys.stderr):
        # A handler may have interrupted a write to the very stream, which cannot be flushed then.
        with suppress(OSError, ValueError, RuntimeError):
            stream.flush()
    os._exit(code)


def leave_threads_behind() -> None:
    """At the end of all work: end this process where threads would keep it, with the status that it ends with anyway.

    An exception that ends it has to be in flight: call this in a ``finally``.
    """
    if all(thread.daemon or thread is threading.main_thread() for thread in threading.enumerate()):
        return
    error = sys.exception()
    if error is None:
        leave()
    if isinstance(error, SystemExit):
        if isinstance(error.code, (int, NoneType)):
            leave(error.code or 0)
        print(error.code, file=sys.stderr)  # noqa: T201 - as Python does
        leave(1)
    sys.excepthook(type(error), error, error.__traceback__)
    leave(1)
