"""One slot of a llama.cpp server: what its cache holds, and calls that read on from there.

The way a prompt is split over calls changes its numbers slightly, so a branch must always be split in the same way,
whatever was read before it. The server, however, keeps as much of its cache as agrees with a new prompt: after
``base + [a, b]``, reading ``base + [a, c]`` would start behind ``a``. So a slot remembers the token that follows the
base in the cache. Where the next suffix begins with that token, a call for the base and one other token comes first.
It costs one token and leaves the base as it is, and then the suffix is computed from its first token on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum

from attrs import define, field

from openjev_core.backends.llamacpp.client import LlamaCppClient
from openjev_core.backends.protocol import Reading


class Following(Enum):
    """What follows a slot's base in the cache, where that is no known token."""

    NOTHING = "nothing"
    UNKNOWN = "unknown"


class BaseLost(Exception):
    """The slot's cache no longer holds its base: another client used the slot, or the model cannot be cut back."""


@define(eq=False)
class Slot:
    """One slot, used by one evaluation at a time.

    Attributes:
        client: The server.
        id: The slot's number on the server.
        base: The token ids at the beginning of the cache that were read in the usual split; empty when there are none.
        following: The token behind the base in the cache.
        calls: Held during each call, so that a health check fits between two of them.
    """

    client: LlamaCppClient
    id: int
    base: tuple[int, ...] = ()
    following: int | Following = Following.NOTHING
    calls: asyncio.Lock = field(factory=asyncio.Lock)

    async def warm(self, ids: Sequence[int]) -> Reading:
        """Make ``ids`` the base: compute all of them and reuse nothing."""
        async with self.calls:
            self.base, self.following = (), Following.UNKNOWN
            answer = await self.client.complete(ids, slot=self.id, reuse=False)
            self.base, self.following = tuple(ids), Following.NOTHING
            return answer

    async def extend(self, suffix: Sequence[int]) -> Reading:
        """Read ``suffix`` behind the base, and make the two together the new base.

        Raises:
            BaseLost: The cache does not hold the base.
        """
        async with self.calls:
            answer = await self._read_on(suffix, ())
            self.base, self.following = (*self.base, *suffix), Following.NOTHING
            return answer

    def cut_back(self, ids: tuple[int, ...]) -> None:
        """Make ``ids`` the base again. The present base begins with them."""
        if len(self.base) > len(ids):
            self.base, self.following = ids, self.base[len(ids)]

    async def read(self, suffix: Sequence[int], labels: Sequence[int]) -> Reading:
        """Read ``suffix`` behind the base, and the labels' logprobs behind it.

        Raises:
            BaseLost: The cache does not hold the base.
        """
        async with self.calls:
            return await self._read_on(suffix, labels)

    async def read_whole(self, prompt: Sequence[int], labels: Sequence[int]) -> Reading:
        """Read a prompt from its first token on and reuse nothing. The base is lost."""
        async with self.calls:
            self.base, self.following = (), Following.UNKNOWN
            return await self.client.complete(prompt, labels, slot=self.id, reuse=False)

    async def probe(self, labels: Sequence[int], *, seconds: float) -> None:
        """Read one token behind the base, which stays, and the labels behind it. The caller holds ``calls``."""
        token = 0
        self.following = Following.UNKNOWN
        prompt = (*self.base, token)
        answer = await self.client.complete(prompt, labels, slot=self.id, reuse=True, seconds=seconds)
        self.following = token
        if answer.cached_tokens != len(self.base):
            self.base = ()

    async def _read_on(self, suffix: Sequence[int], labels: Sequence[int]) -> Reading:
        if self.following in (Following.UNKNOWN, suffix[0]):
            await self._complete((0 if suffix[0] != 0 else 1,), ())
        return await self._complete(suffix, labels)

    async def _complete(self, suffix: Sequence[int], labels: Sequence[int]) -> Reading:
        base, self.following = self.base, Following.UNKNOWN
        answer = await self.client.complete((*base, *suffix), labels, slot=self.id, reuse=True)
        if answer.cached_tokens != len(base):
            self.base = ()
            raise BaseLost
        self.following = suffix[0]
        return answer


class SlotPool:
    """A server's slots. Each is lent to one evaluation at a time; evaluations that wait get one in order of arrival."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = tuple(slots)
        self._free = list(slots)
        self._places = asyncio.Semaphore(len(slots))

    async def take(self, base: tuple[int, ...]) -> Slot:
        """A free slot that holds ``base``, otherwise the slot that has been free for longest."""
        await self._places.acquire()
        slot = next((slot for slot in self._free if slot.base == base), self._free[0])
        self._free.remove(slot)
        return slot

    def give_back(self, slot: Slot) -> None:
        """Return a slot that an evaluation no longer needs."""
        self._free.append(slot)
        self._places.release()
