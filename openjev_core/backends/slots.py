"""How many prompts may be at SGLang at once, shared fairly between evaluations."""

from __future__ import annotations

import asyncio
import time
from collections import deque

from attrs import define, field


@define(eq=False)
class Slots:
    """A slot for each prompt that may be at SGLang at once.

    A free slot goes to the waiting evaluation that holds the fewest, and the slots that become free together are
    divided among those that wait. So an evaluation of 64 questions gets everything while it is alone, and no more than
    its share as soon as another one waits.

    Attributes:
        size: How many there are.
        free: How many nobody holds.
        waiting: The evaluations that wait, in order of arrival.
    """

    size: int
    free: int = field(init=False)
    waiting: list[Party] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.free = self.size

    def party(self) -> Party:
        """A new evaluation's share."""
        return Party(self)

    def distribute(self) -> None:
        """Give what is free to those who wait."""
        while self.free and self.waiting:
            party = min(self.waiting, key=lambda one: one.held)
            wanted, granted = party.queue.popleft()
            if not party.queue:
                # Removed before the division below, which counts this party once.
                self.waiting.remove(party)
            if granted.done():
                continue
            others = len(self.waiting) - (party in self.waiting)
            share = min(wanted, max(1, self.free // (others + 1)))
            party.take(share)
            granted.set_result(share)


@define(eq=False)
class Party:
    """One evaluation, as the slots see it.

    Attributes:
        slots: What it shares with the others.
        held: How many slots it holds.
        waited: Seconds that it waited before it got its first.
        queue: Its waits, in order: how many it wants, and what is told how many it got.
    """

    slots: Slots
    held: int = 0
    waited: float = 0.0
    _asked: bool = False
    queue: deque[tuple[int, asyncio.Future[int]]] = field(factory=deque)

    def take(self, count: int) -> None:
        """Hold ``count`` more."""
        self.held += count
        self.slots.free -= count

    async def acquire(self, wanted: int) -> int:
        """Wait for slots.

        Args:
            wanted: How many prompts are ready to go; at least 1.

        Returns:
            How many of them may go now, from 1 to ``wanted``. Each has to be given back with :meth:`release`.
        """
        first, self._asked, asked_at = not self._asked, True, time.perf_counter()
        if self.slots.free and not self.slots.waiting:
            share = min(wanted, self.slots.free)
            self.take(share)
            return share
        granted: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if not self.queue:
            self.slots.waiting.append(self)
        self.queue.append((wanted, granted))
        try:
            share = await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                # The grant and the cancellation met: nobody will use these slots.
                self.release(granted.result())
            else:
                self.withdraw(granted)
            raise
        if first:
            self.waited = time.perf_counter() - asked_at
        return share

    def withdraw(self, granted: asyncio.Future[int]) -> None:
        """Take a cancelled wait out of the queue."""
        self.queue = deque(entry for entry in self.queue if entry[1] is not granted)
        if not self.queue and self in self.slots.waiting:
            self.slots.waiting.remove(self)

    def release(self, count: int) -> None:
        """Give ``count`` slots back."""
        self.held -= count
        self.slots.free += count
        self.slots.distribute()
