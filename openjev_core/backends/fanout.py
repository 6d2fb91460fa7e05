"""A prefix that is warmed once at a model server, and the branches that are fanned out behind it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import Protocol, Self

from attrs import define, field

from openjev_core.backends.protocol import Branch, Reading
from openjev_core.backends.slots import Party, Slots
from openjev_core.backends.warmth import Warmth
from openjev_core.errors import BackendError, BackendUnavailable

WARM_UP_LABELS = (0,)
"""A warm-up's logprobs mean nothing, but it has to ask for one."""
SHARED_WORTH = 1024
"""Tokens from which on it pays to read what branches share once first: all that they would compute again without. It
holds for a whole prefix and for a beginning that the branches of one question have in common behind it."""

CHECK = Branch((0, 1), WARM_UP_LABELS)
CHECK_KEY = "openjev-check"
CHECK_TIMEOUT = 4.0
"""Seconds for a check's call; less than the engine waits for a check, which would otherwise cut it off unjudged."""


class PromptServer(Protocol):
    """A server that takes whole prompts, several of them in one call, and keeps what it has read of them.

    Attributes:
        title: What messages call it, such as ``SGLang``.
        answered_at: When its model last answered, on the monotonic clock; 0 before it did.
        slots: Prompts that may be at the server at once.
        warmth: The prefixes that it is known to hold.
    """

    slots: Slots
    warmth: Warmth

    @property
    def title(self) -> str: ...  # noqa: D102 - see above

    @property
    def answered_at(self) -> float: ...  # noqa: D102 - see above

    def check_branch(self, branch: Branch, before: int) -> None:
        """Refuse what the server would refuse, or die of: a branch after ``before`` tokens.

        Raises:
            BackendError: Says why.
        """
        ...

    def calls(self, branches: Sequence[Branch]) -> list[Sequence[int]]:
        """Which branches go into one call each: their positions, each in exactly one call and in ascending order."""
        ...

    async def call(self, prefix: Branch | None, branches: Sequence[Branch], key: str) -> list[Reading]:
        """Read branches behind a prefix by one call; the branches alone where there is none.

        Raises:
            BackendError: As :meth:`openjev_core.backends.protocol.WarmPrefix.read` raises it.
        """
        ...


@define(eq=False)
class ServedPrefix:
    """A prefix that a server has read, or reads along with its branches.

    A :class:`openjev_core.backends.protocol.WarmPrefix`.

    Attributes:
        server: Where it is read.
        whole: The prefix itself, as a branch with nothing before it.
        key: Names it.
        branches: Upper bound on the branches that will be read after it, where that is known.
        party: The evaluation's share of the slots.
        warm_up: See :attr:`openjev_core.backends.protocol.WarmPrefix.warm_up`.
    """

    server: PromptServer
    whole: Branch
    key: str
    branches: int | None
    party: Party = field(init=False)
    warm_up: Reading = field(init=False)

    async def __aenter__(self) -> Self:
        self.party = self.server.slots.party()
        self.server.check_branch(self.whole, before=0)
        try:
            self.warm_up = await self.warm()
        except BackendError:
            self.server.warmth.forget()
            raise
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, BackendError):
            self.server.warmth.forget()

    @property
    def waited(self) -> float:
        """See :attr:`openjev_core.backends.protocol.WarmPrefix.waited`."""
        return self.party.waited

    @property
    def length(self) -> int:
        """Tokens of the prefix."""
        return len(self.whole.suffix)

    async def warm(self) -> Reading:
        """Read the prefix. No branch is sent before this returns: a cold prefix is computed several times over.

        One that the server is known to hold takes no call, nor does one that few branches bring along: see
        :mod:`openjev_core.backends.warmth`. It counts as one that reused everything: what an evaluation is said to have
        used must not depend on what ran before it.
        """
        warmth = self.server.warmth
        few = self.branches is not None and self.length * (self.branches - 1) < SHARED_WORTH
        if warmth.holds(self.key) or (few and warmth.may_read_along(self.key)):
            return Reading((), prompt_tokens=self.length, cached_tokens=self.length)
        await self.party.acquire(1)
        try:
            (reading,) = await self.server.call(None, [self.whole], self.key)
            return reading
        finally:
            self.party.release(1)

    async def read(self, branches: Sequence[Branch], shared: int = 0) -> tuple[list[Reading], list[Reading]]:
        """See :meth:`openjev_core.backends.protocol.WarmPrefix.read`."""
        for branch in branches:
            self.server.check_branch(branch, before=self.length)
        further = []
        if shared * (len(branches) - 1) >= SHARED_WORTH:
            further = await self.fan_out([Branch(branches[0].suffix[:shared], WARM_UP_LABELS)])
        readings = await self.fan_out(branches)
        reused = [reading.cached_tokens for reading in readings if reading.cached_tokens is not None]
        self.server.warmth.judge(self.key, self.length, min(reused, default=None))
        return readings, further

    async def fan_out(self, branches: Sequence[Branch]) -> list[Reading]:
        """Read all branches, as many at once as there are slots; the first failure cancels the rest."""
        granted = await self.party.acquire(len(branches))
        if granted == len(branches) and len(self.server.calls(branches)) == 1:
            # The common case, without a task of its own.
            try:
                return await self.server.call(self.whole, branches, self.key)
            finally:
                self.party.release(granted)
        tasks: list[tuple[list[int], asyncio.Task[list[Reading]]]] = []
        try:
            async with asyncio.TaskGroup() as group:
                start = 0
                while True:
                    for call in self.server.calls(branches[start : start + granted]):
                        positions = [start + position for position in call]
                        part = [branches[position] for position in positions]
                        task = group.create_task(self.server.call(self.whole, part, self.key))
                        # Not in the task itself: one that is cancelled before its first step never gets there.
                        task.add_done_callback(partial(self.give_back, len(part)))
                        tasks.append((positions, task))
                    start += granted
                    if start == len(branches):
                        break
                    granted = await self.party.acquire(len(branches) - start)
        except BaseExceptionGroup as failures:
            # What went wrong first; the others are its consequences or its likes.
            raise failures.exceptions[0] from None
        read = {position: one for call, task in tasks for position, one in zip(call, task.result(), strict=True)}
        return [read[position] for position in range(len(branches))]

    def give_back(self, count: int, _: asyncio.Task[list[Reading]]) -> None:
        """Release the slots of a call that has ended, one way or another."""
        self.party.release(count)


async def check_server(server: PromptServer) -> None:
    """Make one labelled one-token call: see :meth:`openjev_core.backends.protocol.Backend.check`.

    Not counted among the slots, so that a busy server can be asked too. A server that is too busy to answer in time is
    well when it answered another call meanwhile.

    Raises:
        BackendError: It was not answered as it should.
    """
    asked_at = time.monotonic()
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            await server.call(None, [CHECK], CHECK_KEY)
    except TimeoutError:
        if server.answered_at <= asked_at:
            said = f"{server.title} has not answered a one-token call for {CHECK_TIMEOUT:g} s"
            raise BackendUnavailable(said) from None
