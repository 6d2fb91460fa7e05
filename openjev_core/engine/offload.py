"""Running work off the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")

PATIENCE = 10.0
"""Seconds after which work that nobody waits for any more stops to count: it hangs."""


class Threads:
    """Threads beside the event loop, as many at once as there are places.

    A plugin's code may hang, and tokenizing a long state takes a while: neither may hold up other requests. What hangs
    keeps its thread, which cannot be stopped, but loses its place to others. The threads are daemons, unlike those of
    :mod:`asyncio` and :mod:`anyio`: one that hangs does not keep the process from ending.

    Args:
        places: How much work runs at once. More waits.
    """

    def __init__(self, places: int) -> None:
        self._places = asyncio.Semaphore(places)

    async def run(self, work: Callable[[], T]) -> T:
        """Run ``work`` in a thread. Cancelling the caller leaves the work to end by itself."""
        await self._places.acquire()
        call = _Call(work, self._places)
        try:
            call.start()
            return await call.outcome
        except asyncio.CancelledError:
            call.loop.call_later(PATIENCE, call.leave)
            raise


class _Call(Generic[T]):
    """One piece of work and its place. All but ``_run`` happens on the event loop, so nothing needs a lock."""

    def __init__(self, work: Callable[[], T], places: asyncio.Semaphore) -> None:
        self.loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[T] = self.loop.create_future()
        self._work = work
        self._places = places
        self._holds_place = True

    def start(self) -> None:
        try:
            threading.Thread(target=contextvars.copy_context().run, args=(self._run,), daemon=True).start()
        except RuntimeError:  # the system has no more threads
            self.leave()
            raise

    def leave(self) -> None:
        """Give the place up, if that has not happened."""
        if self._holds_place:
            self._holds_place = False
            self._places.release()

    def _run(self) -> None:
        outcome: tuple[Callable[[Any], None], Any]
        try:
            outcome = self.outcome.set_result, self._work()
        except StopIteration as error:  # no future takes one
            outcome = self.outcome.set_exception, RuntimeError(f"the work raised {error!r}")
        except BaseException as error:  # noqa: BLE001 - it is raised where the work is awaited
            outcome = self.outcome.set_exception, error
        with suppress(RuntimeError):  # the loop has ended meanwhile, and with it whoever waited
            self.loop.call_soon_threadsafe(self._finish, *outcome)

    def _finish(self, settle: Callable[[Any], None], outcome: Any) -> None:
        self.leave()
        if not self.outcome.done():
            settle(outcome)
