"""One warmed prefix on SGLang: the barrier, and the fan-out behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from attrs import define, field

from openjev_core.backends.protocol import Branch, Reading
from openjev_core.backends.sglang.slots import Party
from openjev_core.backends.sglang.wire import batch_body, parse_many, parse_one, reading, single_body
from openjev_core.errors import BackendError

if TYPE_CHECKING:
    from openjev_core.backends.sglang.backend import SGLangBackend

WARM_UP_LABELS = (0,)
"""A warm-up's logprobs mean nothing, but it has to ask for one."""
SHARED_WORTH = 1024
"""Tokens of a shared beginning that branches would compute again and again, above which reading it once first pays."""


@define(eq=False)
class SGLangPrefix:
    """A prefix that SGLang has read, or reads with its branch: :class:`openjev_core.backends.protocol.WarmPrefix`."""

    backend: SGLangBackend
    whole: Branch
    """The prefix itself: a branch with nothing before it."""
    key: str
    party: Party
    warm_up: Reading = field(init=False)

    async def warm(self, *, single: bool) -> None:
        """Read the prefix. No branch is sent before this returns: a cold prefix is computed several times over.

        One that SGLang is known to hold takes no call, nor does one that a ``single`` branch may bring along. It counts
        as one that reused everything: what an evaluation is said to have used must not depend on what ran before it.
        """
        warmth = self.backend.warmth
        if warmth.holds(self.key) or (single and warmth.may_read_along(self.key)):
            self.warm_up = Reading((), prompt_tokens=self.length, cached_tokens=self.length)
            return
        await self.party.acquire(1)
        try:
            self.warm_up = await self.call(self.whole.suffix_json, self.length, self.whole)
        finally:
            self.party.release(1)

    @property
    def length(self) -> int:
        """Tokens of the prefix."""
        return len(self.whole.suffix)

    async def read(self, branches: Sequence[Branch], shared: int = 0) -> tuple[list[Reading], list[Reading]]:
        """See :meth:`openjev_core.backends.protocol.WarmPrefix.read`."""
        for branch in branches:
            self.backend.admit(branch, before=self.length)
        further = []
        if shared * (len(branches) - 1) >= SHARED_WORTH:
            further.append(await self.warm_shared(Branch(branches[0].suffix[:shared], WARM_UP_LABELS)))
        readings = await self.fan_out(branches)
        reused = [reading.cached_tokens for reading in readings if reading.cached_tokens is not None]
        self.backend.warmth.judge(self.key, self.length, min(reused, default=None))
        return readings, further

    async def warm_shared(self, beginning: Branch) -> Reading:
        """Read the prefix and what the suffixes begin with."""
        await self.party.acquire(1)
        try:
            return await self.call_behind(beginning)
        finally:
            self.party.release(1)

    async def fan_out(self, branches: Sequence[Branch]) -> list[Reading]:
        """Read all branches, as many at once as there are slots; the first failure cancels the rest."""
        granted = await self.party.acquire(len(branches))
        if granted == len(branches) and (granted == 1 or self.backend.fanout == "batch"):
            # The common case, without a task of its own.
            try:
                return await self.send(branches)
            finally:
                self.party.release(granted)
        tasks = []
        try:
            async with asyncio.TaskGroup() as group:
                start = 0
                while True:
                    for part in self.parts(branches[start : start + granted]):
                        task = group.create_task(self.send(part))
                        # Not in the task itself: one that is cancelled before its first step never gets there.
                        task.add_done_callback(partial(self.give_back, len(part)))
                        tasks.append(task)
                    start += granted
                    if start == len(branches):
                        break
                    granted = await self.party.acquire(len(branches) - start)
        except BaseExceptionGroup as failures:
            raise first_failure(failures) from None
        return [one for task in tasks for one in task.result()]

    def give_back(self, count: int, _: asyncio.Task[list[Reading]]) -> None:
        """A part is through, one way or another."""
        self.party.release(count)

    def parts(self, branches: Sequence[Branch]) -> list[Sequence[Branch]]:
        """The branches that go into one call each."""
        return [branches] if self.backend.fanout == "batch" else [[branch] for branch in branches]

    async def send(self, branches: Sequence[Branch]) -> list[Reading]:
        """One call for these branches."""
        if len(branches) == 1:
            return [await self.call_behind(branches[0])]
        rid = self.backend.new_rid()
        # SGLang names a batch's members after it; a list of names works too, but not through a router.
        rids = [f"{rid}_{number}" for number in range(len(branches))]
        body = batch_body(self.whole.suffix_json, branches, rid)
        elements = parse_many(await self.post(body, rids), len(branches))
        length = self.length
        return [
            reading(element, branch.labels, rid=name, prompt_tokens=length + len(branch.suffix))
            for element, branch, name in zip(elements, branches, rids, strict=True)
        ]

    async def call_behind(self, branch: Branch) -> Reading:
        """One call for one branch behind the prefix."""
        prompt = b"%b,%b" % (self.whole.suffix_json, branch.suffix_json)
        return await self.call(prompt, self.length + len(branch.suffix), branch)

    async def call(self, prompt: bytes, prompt_tokens: int, branch: Branch) -> Reading:
        """One call for one prompt, which ends with ``branch``."""
        rid = self.backend.new_rid()
        element = parse_one(await self.post(single_body(prompt, branch.labels_json, rid), [rid]))
        return reading(element, branch.labels, rid=rid, prompt_tokens=prompt_tokens)

    async def post(self, body: bytes, rids: Sequence[str]) -> bytes:
        """Send a body; when no answer is waited for any more, have the work stopped."""
        try:
            return await self.backend.client.generate(body, routing_key=self.key, seconds=self.backend.call_timeout)
        except (asyncio.CancelledError, BackendError):
            self.backend.aborts.add(rids)
            raise


def first_failure(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong first; the others are its consequences or its likes."""
    failure = failures.exceptions[0]
    return first_failure(failure) if isinstance(failure, BaseExceptionGroup) else failure
