"""llama.cpp as a :class:`openjev_core.backends.protocol.Backend`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from attrs import define, field

from openjev_core.backends.calls import check_call
from openjev_core.backends.llamacpp.client import LlamaCppClient
from openjev_core.backends.llamacpp.prefix import LlamaCppPrefix
from openjev_core.backends.llamacpp.slot import BaseLost, Following, SlotPool
from openjev_core.backends.protocol import Branch
from openjev_core.errors import BackendUnavailable

CHECK_LABELS = (0, 1)
CHECK_WAIT = 1.0
"""Seconds that a check waits for a slot's call to end before it settles for the server's own word."""
CHECK_TIMEOUT = 2.0
"""Seconds for each call of a check: with the wait, all of it stays below what the engine's own patience allows."""
PROOF_PREFIX = (0, 1, 0, 1)
PROOF_SUFFIXES = ((2, 3), (2, 4))
"""They begin alike: the second is read after the cache was cut back twice."""


@define(eq=False, kw_only=True)
class LlamaCppBackend:
    """A running llama.cpp server, in this process or elsewhere.

    Attributes:
        client: The connections.
        vocab_size: Ids lie in ``range(vocab_size)``.
        max_prompt_tokens: The longest prompt that leaves room for its output token.
        pool: The server's slots.
        reuses: The model's cache can be cut back to a prefix. Where it cannot (recurrent layers), every branch is
            read whole, and no prefix is warmed.
        release: Ends all that was opened for the backend.
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
    async def prefix(self, ids: Sequence[int], *, key: str, single: bool = False) -> AsyncIterator[LlamaCppPrefix]:
        """See :meth:`openjev_core.backends.protocol.Backend.prefix`.

        Waits for a slot; evaluations get one in the order in which they ask. The prefix stays in its slot until
        another one needs it.
        """
        # There is one server, and its slots are recognised by what they hold. A single branch is read behind a prefix
        # that was read by itself like any other: otherwise its answer would be another one than among others.
        del key, single
        held = tuple(ids)
        self.admit(Branch(held, CHECK_LABELS), before=0)
        slot = await self.pool.take(held)
        try:
            prefix = LlamaCppPrefix(self, slot, held)
            await prefix.warm()
            yield prefix
        finally:
            self.pool.give_back(slot)

    def admit(self, branch: Branch, before: int) -> None:
        """Keep from the server what it would refuse: a branch after ``before`` tokens.

        Raises:
            BackendError: An id outside the vocabulary, an empty or too long prompt, or labels that are not distinct.
        """
        check_call("llama.cpp", branch, before, self.vocab_size, self.max_prompt_tokens)

    async def prove_reuse(self) -> None:
        """Find out, once, whether the model's cache can be cut back to a prefix; sets :attr:`reuses`.

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

        The call reads one token behind whatever a slot holds, so no evaluation loses its prefix, and goes between
        two calls of a running one. While every slot is busy with a long call, or still with one that was broken off,
        that the server answers at all is taken for health: an evaluation's own deadline guards against a call that
        never ends.
        """
        slot = min(self.pool.slots, key=lambda slot: slot.calls.locked())
        try:
            async with asyncio.timeout(CHECK_WAIT):
                await slot.calls.acquire()
        except TimeoutError:
            await self._check_that_it_answers()
            return
        broken_off = slot.following is Following.UNKNOWN
        try:
            await slot.probe(CHECK_LABELS, seconds=CHECK_TIMEOUT)
        except BackendUnavailable:
            if not broken_off:
                raise
            await self._check_that_it_answers()
        finally:
            slot.calls.release()

    async def _check_that_it_answers(self) -> None:
        answer = await self.client.get("/health", seconds=CHECK_TIMEOUT)
        if answer.get("status") != "ok":
            raise BackendUnavailable("llama.cpp is busy and does not say that it is well")

    async def aclose(self) -> None:
        """See :meth:`openjev_core.backends.protocol.Backend.aclose`."""
        await self.release()
