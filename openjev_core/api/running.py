"""The evaluations that run now, each ended when its client hangs up or the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from attrs import define

from openjev_core.api.incoming import ClientGone, Incoming
from openjev_core.errors import Stopping

T = TypeVar("T")


@define(eq=False)
class Run:
    """One evaluation's task, and why it was ended early."""

    task: asyncio.Task[object]
    reason: Exception | None = None
    over: bool = False

    def end(self, reason: Exception) -> None:
        """Cancel the evaluation, which then raises ``reason``. Once it is over this does nothing."""
        if not self.over and self.reason is None:
            self.reason = reason
            self.task.cancel()


class Running:
    """The evaluations of one app."""

    def __init__(self) -> None:
        self._runs: set[Run] = set()

    def __len__(self) -> int:
        return len(self._runs)

    def stop(self) -> None:
        """End every evaluation; their clients are told that the server stops."""
        for run in tuple(self._runs):
            run.end(Stopping("the server is stopping; send the request again"))

    async def until_hang_up(self, incoming: Incoming, evaluation: Awaitable[T]) -> T:
        """Run an evaluation in this task, for as long as its client is there.

        Raises:
            ClientGone: The client went away; the evaluation was cancelled.
            Stopping: The server stops; the evaluation was cancelled.
        """
        task = asyncio.current_task()
        assert task is not None, "called from a coroutine"  # noqa: S101 - for the type checker
        run = Run(task)
        self._runs.add(run)
        watch = asyncio.create_task(incoming.hang_up())
        watch.add_done_callback(lambda done: None if done.cancelled() else run.end(ClientGone()))
        try:
            return await evaluation
        except asyncio.CancelledError:
            # Cancelled from outside as well: then that counts.
            if run.reason is None or task.uncancel() > 0:
                raise
            raise run.reason from None
        finally:
            run.over = True
            self._runs.discard(run)
            watch.cancel()
