"""SGLang as a :class:`openjev_core.backends.protocol.Backend`: prefixes that are warmed once, branches behind them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import Literal, Self

from attrs import define, field

from openjev_core.backends.calls import check_call
from openjev_core.backends.protocol import Branch, Reading
from openjev_core.backends.sglang.client import SGLangClient
from openjev_core.backends.sglang.slots import Party, Slots
from openjev_core.backends.sglang.warmth import Warmth
from openjev_core.backends.sglang.wire import (
    SGLangFacts,
    batch_body,
    parse_many,
    parse_one,
    read_element,
    single_body,
)
from openjev_core.errors import BackendError, BackendUnavailable

WARM_UP_LABELS = (0,)
"""A warm-up's logprobs mean nothing, but it has to ask for one."""
SHARED_WORTH = 1024
"""Tokens of a shared beginning that branches would compute again and again, above which reading it once first pays."""
CHECK = Branch((0, 1), WARM_UP_LABELS)
CHECK_KEY = "openjev-check"
CHECK_TIMEOUT = 4.0
"""Seconds for a check's call; less than the engine waits for a check, which would otherwise cut it off unjudged."""


@define(eq=False, kw_only=True)
class SGLangBackend:
    """A running SGLang, or a router in front of several.

    Attributes:
        client: The connections.
        vocab_size: Ids lie in ``range(vocab_size)``. One that does not would kill the Python front end's server.
        max_prompt_tokens: The longest prompt that leaves room for its output token.
        fanout: ``batch``: one call carries as many branches as there are slots; ``calls``: one call each.
        slots: Prompts at SGLang at once.
        facts: What the server said about itself at the start.
        warmth: The prefixes that it is known to hold.
        name: ``sglang``.
    """

    client: SGLangClient
    vocab_size: int
    max_prompt_tokens: int
    fanout: Literal["batch", "calls"]
    slots: Slots
    facts: SGLangFacts = SGLangFacts()
    warmth: Warmth = field(factory=Warmth, repr=False)
    name: str = field(default="sglang", init=False)

    def prefix(self, ids: Sequence[int], *, key: str, single: bool = False) -> SGLangPrefix:
        """See :meth:`openjev_core.backends.protocol.Backend.prefix`. SGLang itself decides how long it keeps one."""
        return SGLangPrefix(self, Branch(tuple(ids), WARM_UP_LABELS), key, single)

    def check_branch(self, branch: Branch, before: int) -> None:
        """Refuse what would kill SGLang or be refused by it: a branch after ``before`` tokens.

        Raises:
            BackendError: An id outside the vocabulary, an empty or too long prompt, or labels that are not distinct.
        """
        check_call("SGLang", branch, before, self.vocab_size, self.max_prompt_tokens)

    async def check(self) -> None:
        """See :meth:`openjev_core.backends.protocol.Backend.check`.

        Not counted among the slots, so that a busy server can be asked too. A server that is too busy to answer in
        time is well when it answered another call meanwhile.
        """
        rid, asked_at = self.client.new_rid(), time.monotonic()
        body = single_body(CHECK.suffix_json, CHECK.labels_json, rid)
        try:
            async with asyncio.timeout(CHECK_TIMEOUT):
                answer = await self.client.generate(body, rids=[rid], routing_key=CHECK_KEY)
        except TimeoutError:
            if self.client.answered_at > asked_at:
                return
            raise BackendUnavailable(f"SGLang has not answered a one-token call for {CHECK_TIMEOUT:g} s") from None
        read_element(parse_one(answer), CHECK.labels, rid=rid, prompt_tokens=len(CHECK.suffix))

    async def aclose(self) -> None:
        """See :meth:`openjev_core.backends.protocol.Backend.aclose`."""
        await self.client.aclose()


@define(eq=False)
class SGLangPrefix:
    """A prefix that SGLang has read, or reads with its branch: :class:`openjev_core.backends.protocol.WarmPrefix`.

    Attributes:
        backend: Where it is read.
        whole: The prefix itself, as a branch with nothing before it.
        key: Names it.
        single: One branch is all that will be read after it.
        party: The evaluation's share of the slots.
        warm_up: See :attr:`openjev_core.backends.protocol.WarmPrefix.warm_up`.
    """

    backend: SGLangBackend
    whole: Branch
    key: str
    single: bool
    party: Party = field(init=False)
    warm_up: Reading = field(init=False)

    async def __aenter__(self) -> Self:
        self.party = self.backend.slots.party()
        self.backend.check_branch(self.whole, before=0)
        try:
            self.warm_up = await self.warm()
        except BackendError:
            self.backend.warmth.forget()
            raise
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, BackendError):
            self.backend.warmth.forget()

    @property
    def length(self) -> int:
        """Tokens of the prefix."""
        return len(self.whole.suffix)

    async def warm(self) -> Reading:
        """Read the prefix. No branch is sent before this returns: a cold prefix is computed several times over.

        One that SGLang is known to hold takes no call, nor does one that a single branch may bring along. It counts as
        one that reused everything: what an evaluation is said to have used must not depend on what ran before it.
        """
        warmth = self.backend.warmth
        if warmth.holds(self.key) or (self.single and warmth.may_read_along(self.key)):
            return Reading((), prompt_tokens=self.length, cached_tokens=self.length)
        await self.party.acquire(1)
        try:
            return await self.call(self.whole.suffix_json, self.length, self.whole)
        finally:
            self.party.release(1)

    async def read(self, branches: Sequence[Branch], shared: int = 0) -> tuple[list[Reading], list[Reading]]:
        """See :meth:`openjev_core.backends.protocol.WarmPrefix.read`."""
        for branch in branches:
            self.backend.check_branch(branch, before=self.length)
        further = []
        if shared * (len(branches) - 1) >= SHARED_WORTH:
            further = await self.fan_out([Branch(branches[0].suffix[:shared], WARM_UP_LABELS)])
        readings = await self.fan_out(branches)
        reused = [reading.cached_tokens for reading in readings if reading.cached_tokens is not None]
        self.backend.warmth.judge(self.key, self.length, min(reused, default=None))
        return readings, further

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
            # What went wrong first; the others are its consequences or its likes.
            raise failures.exceptions[0] from None
        return [reading for task in tasks for reading in task.result()]

    def give_back(self, count: int, _: asyncio.Task[list[Reading]]) -> None:
        """Release the slots of a call that has ended, one way or another."""
        self.party.release(count)

    def parts(self, branches: Sequence[Branch]) -> list[Sequence[Branch]]:
        """The branches that go into one call each."""
        return [branches] if self.backend.fanout == "batch" else [[branch] for branch in branches]

    async def send(self, branches: Sequence[Branch]) -> list[Reading]:
        """One call for these branches."""
        if len(branches) == 1:
            (branch,) = branches
            prompt = b"%b,%b" % (self.whole.suffix_json, branch.suffix_json)
            return [await self.call(prompt, self.length + len(branch.suffix), branch)]
        rid = self.backend.client.new_rid()
        # SGLang names a batch's members after it; a list of names works too, but not through a router.
        rids = [f"{rid}_{number}" for number in range(len(branches))]
        body = batch_body(self.whole.suffix_json, branches, rid)
        elements = parse_many(await self.post(body, rids), len(branches))
        return [
            read_element(element, branch.labels, rid=name, prompt_tokens=self.length + len(branch.suffix))
            for element, branch, name in zip(elements, branches, rids, strict=True)
        ]

    async def call(self, prompt: bytes, prompt_tokens: int, branch: Branch) -> Reading:
        """One call for one prompt, which ends with ``branch``."""
        rid = self.backend.client.new_rid()
        element = parse_one(await self.post(single_body(prompt, branch.labels_json, rid), [rid]))
        return read_element(element, branch.labels, rid=rid, prompt_tokens=prompt_tokens)

    async def post(self, body: bytes, rids: Sequence[str]) -> bytes:
        """Send a body."""
        return await self.backend.client.generate(body, rids=rids, routing_key=self.key)
