"""How many evaluations run at once, and how long each may take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from openjev_core.errors import AtCapacity, DeadlineExceeded


class Admission:
    """Counts the evaluations in flight, turns away what is over the limit, and stops what takes too long.

    Args:
        limit: Evaluations at once.
        seconds: How long one may take.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self.in_flight = 0
        self.branches_in_flight = 0

    @asynccontextmanager
    async def admit(self) -> AsyncIterator[None]:
        """Hold one place for the length of the block, and stop the block when its time is over.

        Raises:
            AtCapacity: There is no place.
            DeadlineExceeded: The block was stopped.
        """
        if self.in_flight >= self._limit:
            raise AtCapacity(
                f"{self.in_flight} evaluations are running, as many as are admitted at once "
                f"(max_concurrent_requests {self._limit}); try again shortly"
            )
        self.in_flight += 1
        try:
            async with asyncio.timeout(self._seconds) as deadline:
                yield
        except TimeoutError:
            if not deadline.expired():
                raise
            msg = f"the evaluation took longer than request_timeout ({self._seconds:g} s) and was stopped"
            raise DeadlineExceeded(msg) from None
        finally:
            self.in_flight -= 1

    @contextmanager
    def reading(self, branches: int) -> Iterator[None]:
        """Count branches as being read for the length of the block."""
        self.branches_in_flight += branches
        try:
            yield
        finally:
            self.branches_in_flight -= branches
