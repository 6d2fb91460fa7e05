"""How many evaluations run at once, how many wait for a place, and how long each may take."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from openjev_core.errors import AtCapacity, DeadlineExceeded

REMEMBERED = 32
"""Evaluations whose durations tell how long the next ones will take."""

WAITING_PER_PLACE = 4
"""Evaluations that may wait for each place. Each holds its body: at the defaults, 64 bodies of at most 2 MiB."""

LONGEST_PAUSE = 60.0
"""Most seconds that clients are told to wait. Those built on OpenAI's SDK ignore more, and try again at once."""


class Admission:
    """Counts the evaluations in flight, and stops what takes too long.

    One that comes when every place is taken waits where recent evaluations say that it would be answered in time, and
    is turned away where they do not. So a burst is served, and a client is not left waiting for what it gives up.

    Args:
        limit: Evaluations at once.
        seconds: How long one may take.
        patience: Seconds from its arrival in which one that waits has to be answered, by what recent ones took. It
            waits no longer. 0: none waits.
    """

    def __init__(self, limit: int, seconds: float, patience: float = 0.0) -> None:
        self._limit = limit
        self._seconds = seconds
        self._patience = patience
        self._places = asyncio.Semaphore(limit)
        self._running: list[float] = []
        self._recent: deque[float] = deque(maxlen=REMEMBERED)
        self.waiting = 0
        self.branches_in_flight = 0

    @property
    def in_flight(self) -> int:
        """Evaluations that are running."""
        return len(self._running)

    @property
    def duration(self) -> float:
        """Seconds that an evaluation takes: the mean of the recent ones, or, if it is more, of those running so far."""
        now = time.monotonic()
        ages = [now - begun for begun in self._running]
        return max(mean(self._recent), mean(ages))

    @asynccontextmanager
    async def admit(self) -> AsyncIterator[float]:
        """Hold one place for the length of the block, and stop the block when its time is over.

        Gives the seconds that it waited for the place.

        Raises:
            AtCapacity: There is no place, and waiting for one would take too long or did.
            DeadlineExceeded: The block was stopped.
        """
        arrived = time.monotonic()
        await self._place()
        begun = time.monotonic()
        self._running.append(begun)
        try:
            async with asyncio.timeout(self._seconds) as deadline:
                yield begun - arrived
            self._recent.append(time.monotonic() - begun)
        except TimeoutError:
            if not deadline.expired():
                raise
            msg = f"the evaluation took longer than request_timeout ({self._seconds:g} s) and was stopped"
            raise DeadlineExceeded(msg) from None
        finally:
            self._running.remove(begun)
            self._places.release()

    async def _place(self) -> None:
        """Take a place, and wait for one where that is worth it."""
        if not self._places.locked():
            await self._places.acquire()
            return
        if self.waiting >= WAITING_PER_PLACE * self._limit or not self._worth_waiting():
            raise self._full()
        self.waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                await self._places.acquire()
        except TimeoutError:
            raise self._full() from None
        finally:
            self.waiting -= 1

    def _worth_waiting(self) -> bool:
        """Whether one more would be answered in time. Before the first evaluation has ended, nobody knows."""
        turns = (self.waiting + 1) / self._limit + 1  # for a place to come free, and then its own
        return bool(self._recent) and turns * self.duration <= self._patience

    def _full(self) -> AtCapacity:
        return AtCapacity(
            f"{self.in_flight} evaluations are running, as many as are admitted at once (max_concurrent_requests "
            f"{self._limit}), and {self.waiting} are waiting; try again shortly",
            min(LONGEST_PAUSE, max(1.0, self.duration)),
        )

    @contextmanager
    def reading(self, branches: int) -> Iterator[None]:
        """Count branches as being read for the length of the block."""
        self.branches_in_flight += branches
        try:
            yield
        finally:
            self.branches_in_flight -= branches


def mean(seconds: deque[float] | list[float]) -> float:
    """The mean; 0 of none."""
    return math.fsum(seconds) / len(seconds) if seconds else 0.0
