"""One warmed prefix on llama.cpp: its branches, one after another on one slot."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import define, field

from openjev_core.backends.llamacpp.slot import BaseLost, Slot
from openjev_core.backends.protocol import Branch, Reading

if TYPE_CHECKING:
    from openjev_core.backends.llamacpp.backend import LlamaCppBackend

SHARED_WORTH = 16
"""Tokens that branches would compute again and again, above which reading their shared beginning first pays: the call
that it takes costs as much as 3 or 4 tokens, and the shorter suffixes a little of a batch's efficiency."""

log = logging.getLogger(__name__)


def apart(tokens: Sequence[int], before: object) -> list[int]:
    """An order of ``tokens``, as indices, in which as few as possible stand behind their like.

    Args:
        tokens: The first token of each suffix: behind its like, a suffix takes a call more.
        before: What stands before all of them.
    """
    waiting: dict[int, deque[int]] = {}
    for index, token in enumerate(tokens):
        waiting.setdefault(token, deque()).append(index)
    # The most frequent first: otherwise it would be left over, and stand behind itself at the end.
    heap = [(-len(indices), token) for token, indices in waiting.items()]
    heapq.heapify(heap)
    order = []
    while heap:
        most = heapq.heappop(heap)
        _, token = heapq.heapreplace(heap, most) if most[1] == before and heap else most
        order.append(waiting[token].popleft())
        if waiting[token]:
            heapq.heappush(heap, (-len(waiting[token]), token))
        before = token
    return order


@define(eq=False)
class LlamaCppPrefix:
    """A prefix that a slot holds (see :class:`openjev_core.backends.protocol.WarmPrefix`)."""

    backend: LlamaCppBackend
    slot: Slot
    ids: tuple[int, ...]
    warm_up: Reading = field(init=False)
    whole: bool = field(init=False)
    turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.whole = not self.backend.reuses

    async def warm(self) -> None:
        """Have the slot hold the prefix.

        One that it still holds takes no call, and counts as one that reused everything: what an evaluation is said
        to have used must not depend on what ran before it. A model that cannot reuse a prefix is not made to read it.
        """
        if self.whole:
            self.warm_up = Reading((), prompt_tokens=0, cached_tokens=0, output_tokens=0)
        elif self.slot.base == self.ids:
            self.warm_up = Reading((), prompt_tokens=len(self.ids), cached_tokens=len(self.ids))
        else:
            self.warm_up = await self.slot.warm(self.ids)

    async def read(self, branches: Sequence[Branch], shared: int = 0) -> tuple[list[Reading], list[Reading]]:
        """See :meth:`openjev_core.backends.protocol.WarmPrefix.read`."""
        for branch in branches:
            self.backend.admit(branch, before=len(self.ids))
        async with self.turn:
            if self.whole or shared * (len(branches) - 1) < SHARED_WORTH:
                return await self._each((), branches), []
            # A branch keeps at least one token of its own: the one that its labels are read behind.
            shared = min(shared, *(len(branch.suffix) - 1 for branch in branches))
            common = branches[0].suffix[:shared]
            try:
                return await self._after_common(common, branches)
            finally:
                self.slot.cut_back(self.ids)

    async def _after_common(
        self, common: tuple[int, ...], branches: Sequence[Branch]
    ) -> tuple[list[Reading], list[Reading]]:
        further = await self._extended(common)
        return await self._each(common, branches), further

    async def _each(self, common: tuple[int, ...], branches: Sequence[Branch]) -> list[Reading]:
        """Read the branches behind the prefix and ``common``, in an order in which the slot parts few that are alike.

        No reading depends on what was read before it, so the order moves no number.
        """
        readings: dict[int, Reading] = {}
        for index in apart([branch.suffix[len(common)] for branch in branches], self.slot.following):
            readings[index] = await self._one(common, branches[index])
        return [readings[index] for index in range(len(branches))]

    async def _one(self, common: tuple[int, ...], branch: Branch) -> Reading:
        """Read one branch behind the prefix and ``common``."""
        for _ in range(2):
            if self.whole:
                break
            try:
                await self._hold(common)
                return await self.slot.read(branch.suffix[len(common) :], branch.labels)
            except BaseLost:
                continue
        else:
            # Once is another client of the server; twice in a row is a model or server that does not keep a prefix.
            self.whole = True
            log.warning("llama.cpp does not keep the prefix in slot %d; reading whole prompts instead", self.slot.id)
        return await self.slot.read_whole((*self.ids, *branch.suffix), branch.labels)

    async def _extended(self, common: tuple[int, ...]) -> list[Reading]:
        """Extend the base by ``common``: the call's reading, if the base can be held at all."""
        for _ in range(2):
            try:
                await self._hold(())
                return [await self.slot.extend(common)]
            except BaseLost:
                continue
        return []

    async def _hold(self, common: tuple[int, ...]) -> None:
        """Have the slot hold the prefix and ``common``, each read by itself."""
        if self.slot.base != (*self.ids, *common):
            if self.slot.base != self.ids:
                await self.slot.warm(self.ids)
            if common:
                await self.slot.extend(common)
