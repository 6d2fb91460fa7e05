"""llama.cpp as a :class:`openjev_core.backends.protocol.Backend`, and a prefix that one of its slots holds."""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from attrs import define, field

from openjev_core.backends.calls import check_call
from openjev_core.backends.llamacpp.client import LlamaCppClient
from openjev_core.backends.llamacpp.slot import BaseLost, Following, Slot, SlotPool
from openjev_core.backends.protocol import Branch, Reading
from openjev_core.errors import BackendUnavailable

CHECK_LABELS = (0, 1)
CHECK_WAIT = 1.0
"""Seconds that a check waits for a slot's call to end. After that, the server's own ``/health`` has to do."""
CHECK_TIMEOUT = 2.0
"""Seconds for each call of a check. Together with the wait they stay below the engine's own limit for a check."""
PROOF_PREFIX = (0, 1, 0, 1)
PROOF_SUFFIXES = ((2, 3), (2, 4))
"""Both begin with the same token, so before the second is read the cache has been cut back twice."""
SHARED_WORTH = 16
"""Number of tokens, repeated among the branches, from which on their shared beginning is read first. The call that this
takes costs as much as 3 or 4 tokens, and shorter suffixes use a batch a little less efficiently."""

logger = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class LlamaCppBackend:
    """A running llama.cpp server, in this process or elsewhere.

    Attributes:
        client: The connections.
        vocab_size: Ids lie in ``range(vocab_size)``.
        max_prompt_tokens: The longest prompt that leaves room for its output token.
        pool: The server's slots.
        reuses: True when the model's cache can be cut back to a prefix. Where it cannot (recurrent layers), no prefix
            is warmed and every branch is read with the whole prompt.
        release: Closes everything that was opened for the backend.
        name: ``llama.cpp``.
    """

    client: LlamaCppClient
    vocab_size: int
    max_prompt_tokens: int
    pool: SlotPool
    release: Callable[[], Awaitable[None]]
    reuses: bool = True
    name: str = field(default="llama.cpp", init=False)

    @asynccontextmanager
    async def prefix(
        self, ids: Sequence[int], *, key: str, branches: int | None = None
    ) -> AsyncIterator[LlamaCppPrefix]:
        """See :meth:`openjev_core.backends.protocol.Backend.prefix`.

        Waits for a slot; evaluations get one in the order in which they ask. The prefix stays in its slot until
        another one needs it.
        """
        # No key is needed: there is one server, and each slot knows which prefix it holds. There is always a warm-up:
        # without one, the first branch's answer would differ from the one that it gets after others.
        del key, branches
        held = tuple(ids)
        self.admit(Branch(held, CHECK_LABELS), before=0)
        asked_at = time.perf_counter()
        slot = await self.pool.take(held)
        try:
            prefix = LlamaCppPrefix(self, slot, held, time.perf_counter() - asked_at)
            await prefix.warm()
            yield prefix
        finally:
            self.pool.give_back(slot)

    def admit(self, branch: Branch, before: int) -> None:
        """Refuse a branch after ``before`` tokens that the server would refuse, before it is sent.

        Raises:
            BackendError: An id outside the vocabulary, an empty or too long prompt, or labels that are not distinct.
        """
        check_call("llama.cpp", branch, before, self.vocab_size, self.max_prompt_tokens)

    async def prove_reuse(self) -> None:
        """Find out whether the model's cache can be cut back to a prefix, and set :attr:`reuses`.

        Raises:
            BackendError: The server does not answer a labelled call as it should.
        """
        slot = self.pool.slots[0]
        try:
            await slot.warm(PROOF_PREFIX)
            for suffix in PROOF_SUFFIXES:
                await slot.read(suffix, CHECK_LABELS)
        except BaseLost:
            self.reuses = False

    async def check(self) -> None:
        """See :meth:`openjev_core.backends.protocol.Backend.check`.

        The call reads one token behind the prefix that a slot holds, between two calls of an evaluation, so no
        evaluation loses its prefix. While every slot is busy, with a long call or with one that was cancelled, an
        answer of ``/health`` is enough: the evaluation's own deadline ends a call that never returns.
        """
        slot = min(self.pool.slots, key=lambda slot: slot.calls.locked())
        try:
            async with asyncio.timeout(CHECK_WAIT):
                await slot.calls.acquire()
        except TimeoutError:
            await self._check_that_it_answers()
            return
        cancelled = slot.following is Following.UNKNOWN
        try:
            await slot.probe(CHECK_LABELS, seconds=CHECK_TIMEOUT)
        except BackendUnavailable:
            if not cancelled:
                raise
            await self._check_that_it_answers()
        finally:
            slot.calls.release()

    async def _check_that_it_answers(self) -> None:
        answer = await self.client.get("health", seconds=CHECK_TIMEOUT)
        if answer.get("status") != "ok":
            raise BackendUnavailable("llama.cpp is busy, and its /health does not say ok")

    async def aclose(self) -> None:
        """See :meth:`openjev_core.backends.protocol.Backend.aclose`."""
        await self.release()


@define(eq=False)
class LlamaCppPrefix:
    """A prefix that a slot holds: a :class:`openjev_core.backends.protocol.WarmPrefix`.

    Attributes:
        backend: The server's.
        slot: Holds the prefix.
        ids: The prefix's token ids.
        waited: Seconds of waiting for the slot.
        warm_up: The reading of the call that warmed it.
        whole: True when branches are read with the whole prompt, because the slot does not keep the prefix.
        turn: Held while branches are read.
    """

    backend: LlamaCppBackend
    slot: Slot
    ids: tuple[int, ...]
    waited: float
    warm_up: Reading = field(init=False)
    whole: bool = field(init=False)
    turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.whole = not self.backend.reuses

    async def warm(self) -> None:
        """Make the slot hold the prefix.

        A prefix that the slot still holds takes no call. It is reported as a call that reused everything, because the
        usage of an evaluation must not depend on what ran before it. A model that cannot reuse a prefix does not read
        it.
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
                further = await self._extended(common)
                return await self._each(common, branches), further
            finally:
                self.slot.cut_back(self.ids)

    async def _each(self, common: tuple[int, ...], branches: Sequence[Branch]) -> list[Reading]:
        """Read the branches behind the prefix and ``common``, in the order that takes the fewest calls.

        The order changes no number, because no reading depends on what was read before it.
        """
        readings: dict[int, Reading] = {}
        for index in spaced_order([branch.suffix[len(common)] for branch in branches], self.slot.following):
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
            # Another client of the server explains one loss. Two in a row mean that the prefix is not kept at all.
            self.whole = True
            logger.warning("llama.cpp does not keep the prefix in slot %d; reading whole prompts instead", self.slot.id)
        return await self.slot.read_whole((*self.ids, *branch.suffix), branch.labels)

    async def _extended(self, common: tuple[int, ...]) -> list[Reading]:
        """Extend the base by ``common``. Returns the call's reading, or nothing if the slot loses the base twice."""
        for _ in range(2):
            try:
                await self._hold(())
                return [await self.slot.extend(common)]
            except BaseLost:
                continue
        return []

    async def _hold(self, common: tuple[int, ...]) -> None:
        """Make the slot hold the prefix and ``common``, each read by a call of its own."""
        if self.slot.base != (*self.ids, *common):
            if self.slot.base != self.ids:
                await self.slot.warm(self.ids)
            if common:
                await self.slot.extend(common)


def spaced_order(tokens: Sequence[int], before: object) -> list[int]:
    """The indices of ``tokens`` in an order in which as few equal tokens as possible are neighbours.

    Args:
        tokens: The first token of each suffix. A suffix takes one call more when the one read before it begins with
            the same token.
        before: The token that was read before all of them.
    """
    waiting: dict[int, deque[int]] = {}
    for index, token in enumerate(tokens):
        waiting.setdefault(token, deque()).append(index)
    # The most frequent token comes first: otherwise only that one would be left at the end.
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
