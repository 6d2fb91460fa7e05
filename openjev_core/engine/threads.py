"""Running work off the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")

PATIENCE = 10.0
"""Seconds after which work that nobody waits for any more stops to count: it hangs."""


class Threads:
    """Threads beside the event loop, as many at once as there are places.

    A plugin's code may hang, and tokenizing a long state takes a while: neither may hold up other requests. What hangs
    keeps its thread, which cannot be stopped, but loses its place to others. The threads are daemons, unlike those of
    :mod:`asyncio` and :mod:`anyio`: one that hangs does not keep the process from ending. They are kept for the next
    work, since starting one costs more than most work does.

    Args:
        places: How much work runs at once. More waits.
    """

    def __init__(self, places: int) -> None:
        self._places = asyncio.Semaphore(places)
        self._idle: list[_Worker] = []
        self._all: list[_Worker] = []
        weakref.finalize(self, _dismiss, self._all)

    async def run(self, work: Callable[[], T], abandoned: Callable[[T], None] | None = None) -> T:
        """Run ``work`` in a thread. Cancelling the caller leaves the work to end by itself.

        Args:
            work: What is done.
            abandoned: Called with the work's result, in a thread, where nobody waits for it any more.
        """
        await self._places.acquire()
        call = _Call(work, abandoned, self._places)
        try:
            worker = self._free_worker()
        except RuntimeError:  # the system has no more threads
            call.leave()
            raise
        worker.calls.put(call)
        try:
            return await call.outcome
        except asyncio.CancelledError:
            call.loop.call_later(PATIENCE, call.leave)
            raise
        finally:
            # An error's traceback holds this frame, and the call's outcome the error: see :func:`perform`.
            del call, worker

    def start(self, work: Callable[[], None]) -> None:
        """Run ``work`` in a thread and wait for nothing. It takes no place: it may hang."""
        self._free_worker().calls.put(_Call(work))

    def _free_worker(self) -> _Worker:
        if self._idle:
            # The one that ended last: its memory is warm, and a quiet server keeps using few.
            return self._idle.pop()
        worker = _Worker(self._idle)
        self._all.append(worker)
        return worker


class _Worker:
    """A thread that runs one call after another, and stands among the idle between them."""

    def __init__(self, idle: list[_Worker]) -> None:
        self.calls: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        self._idle = idle
        threading.Thread(target=self._run, name="openjev work", daemon=True).start()

    def _run(self) -> None:
        while (call := self.calls.get()) is not None:
            result, error = perform(call.context, call.work)
            loop = call.loop
            with suppress(RuntimeError):  # the loop has ended meanwhile, and with it whoever waited
                loop.call_soon_threadsafe(self._finish, call, result, error)
            # An idle worker must not keep a finished request's state alive.
            del call, result, error, loop

    def _finish(self, call: _Call[Any], result: Any, error: BaseException | None) -> None:
        call.leave()
        if call.outcome.done():
            if error is None and call.abandoned is not None:
                self.calls.put(_Call(partial(call.abandoned, result)))
                return
        elif error is None:
            call.outcome.set_result(result)
        else:
            call.outcome.set_exception(error)
        self._idle.append(self)


def _dismiss(workers: list[_Worker]) -> None:
    """End the threads of an engine that is gone: those that are busy after their work."""
    for worker in workers:
        worker.calls.put(None)


class _Call(Generic[T]):
    """One piece of work, and its place where it has one."""

    def __init__(
        self,
        work: Callable[[], T],
        abandoned: Callable[[T], None] | None = None,
        places: asyncio.Semaphore | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[T] = self.loop.create_future()
        self.work = work
        self.abandoned = abandoned
        self.context = contextvars.copy_context()
        self._places = places

    def leave(self) -> None:
        """Give the place up, if that has not happened."""
        places, self._places = self._places, None
        if places is not None:
            places.release()


def perform(context: contextvars.Context, work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """Do the work; its result, or its error.

    An error's traceback holds this frame. So nothing here refers to the outcome, which holds the error: in a circle, a
    refused request would stay until Python's collector comes by.
    """
    try:
        return context.run(work), None
    except StopIteration as error:  # no future takes one
        return None, RuntimeError(f"the work raised {error!r}")
    except BaseException as error:  # noqa: BLE001 - it is raised where the work is awaited
        return None, error
