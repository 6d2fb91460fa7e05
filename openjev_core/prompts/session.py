"""Reading readouts with a model that takes tokens: a state becomes a prefix, readouts become branches behind it."""

from __future__ import annotations

import asyncio
import hashlib
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self, cast

from attrs import define, evolve, field, frozen

from openjev_core.backends.protocol import Backend, Branch, Reading, WarmPrefix
from openjev_core.errors import BackendError, RequestError
from openjev_core.limits import Limits
from openjev_core.prompts.branches import BranchedQuestion, BranchedReadout, BranchWriter
from openjev_core.prompts.budget import Budget, too_long
from openjev_core.prompts.chat import Prefix, PromptWriter
from openjev_core.prompts.encoding import TooManyTokens
from openjev_core.prompts.labels import Labels
from openjev_core.question import QuestionType
from openjev_core.reader import OrderReading, PlannedReadout, PreparedQuestion, Usage


@frozen
class PromptReader:
    """A backend that takes tokens, as a :class:`openjev_core.reader.Reader`.

    Attributes:
        backend: Reads tokens.
        writer: Writes the model's prompts.
        labels: The model's labels.
        limits: What a request may ask for.
    """

    backend: Backend
    writer: PromptWriter
    labels: Labels
    limits: Limits

    def session(self, state: str | dict[str, Any] | list[Any]) -> PromptSession:
        """See :meth:`openjev_core.reader.Reader.session`."""
        limit = self.limits.max_input_tokens
        try:
            prefix = self.writer.write(state, limit)
        except TooManyTokens as error:
            raise RequestError.at(("state",), too_long(f"at least {error.at_least}", limit), "too_long") from None
        budget = Budget.after(prefix, self.limits)
        return PromptSession(self.backend, BranchWriter(self.writer, self.labels, prefix.ending), prefix, budget)


@define(eq=False)
class PromptSession:
    """A prefix, and the branches that are read behind it: a :class:`openjev_core.reader.Session`.

    Attributes:
        backend: Reads tokens.
        branch_writer: Writes the branches.
        prefix: What every branch begins with.
        budget: The tokens that have been prepared so far.
        waited, prefill, reading: Seconds; see :class:`openjev_core.reader.Session`.
    """

    backend: Backend
    branch_writer: BranchWriter
    prefix: Prefix
    budget: Budget
    waited: float = field(default=0.0, init=False)
    prefill: float = field(default=0.0, init=False)
    reading: float = field(default=0.0, init=False)
    _warm: WarmPrefix | None = field(default=None, init=False)
    _holding: AbstractAsyncContextManager[WarmPrefix] | None = field(default=None, init=False)
    _warm_ups: list[Reading] = field(factory=list, init=False)
    _readings: list[Reading] = field(factory=list, init=False)

    def prepare(
        self,
        question_type: QuestionType[Any, Any],
        readouts: Iterable[PlannedReadout],
        earlier: PreparedQuestion | None = None,
        question: Any = None,
    ) -> BranchedQuestion:
        """See :meth:`openjev_core.reader.Session.prepare`."""
        known = cast("BranchedQuestion | None", earlier)
        if (
            known is not None
            and known.ending.text == self.prefix.ending.text
            and self.budget.afford(known.suffix_tokens)
        ):
            return known
        # A question whose type fails has spent nothing.
        budget, prepared = evolve(self.budget), []
        for planned in readouts:
            variants = []
            for order in planned.orders:
                try:
                    variant = self.branch_writer.variant(question_type, question, planned.readout, order, budget.room)
                except TooManyTokens as error:
                    raise budget.overspent(error.at_least, planned.readout.loc, "at least ") from None
                budget.spend(len(variant.branch.suffix), planned.readout.loc)
                variants.append(variant)
            prepared.append(BranchedReadout(planned, tuple(variants)))
        self.budget = budget
        return BranchedQuestion(tuple(prepared), self.prefix.ending)

    async def __aenter__(self) -> Self:
        started = time.perf_counter()
        ids = self.prefix.ids
        unread = self.budget.branches - len(self._readings)
        self._holding = self.backend.prefix(ids, key=routing_key(ids), branches=unread)
        self._warm = await self._holding.__aenter__()
        # Counted once, however often the session is entered: a prefix is read again where others needed its slot.
        if not self._warm_ups:
            self._warm_ups.append(self._warm.warm_up)
        self.waited += self._warm.waited
        self.prefill += time.perf_counter() - started - self._warm.waited
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        holding, self._holding, self._warm = self._holding, None, None
        return None if holding is None else await holding.__aexit__(kind, error, trace)

    async def read(self, questions: Sequence[PreparedQuestion]) -> list[list[list[OrderReading]]]:
        """See :meth:`openjev_core.reader.Session.read`.

        Questions that share nothing beyond the prefix are read together, each other one by itself.
        """
        warm, started = self._warm, time.perf_counter()
        already = 0.0 if warm is None else warm.waited
        branched = cast("Sequence[BranchedQuestion]", questions)
        groups: dict[BranchedQuestion | None, list[Branch]] = {}
        for question in branched:
            group = groups.setdefault(question if question.shared else None, [])
            group.extend([variant.branch for readout in question.readouts for variant in readout.variants])
        calls = [self._read(branches, question.shared if question else 0) for question, branches in groups.items()]
        found = {one: iter(readings) for one, readings in zip(groups, await first_failure(calls), strict=True)}
        waited = 0.0 if warm is None else warm.waited - already
        self.waited += waited
        self.reading += time.perf_counter() - started - waited
        return [
            [[order_reading(next(left)) for _ in readout.variants] for readout in question.readouts]
            for question in branched
            for left in [found[question if question.shared else None]]
        ]

    async def _read(self, branches: Sequence[Branch], shared: int) -> Sequence[Reading]:
        if not branches:
            return ()
        if self._warm is None:
            raise RuntimeError("the session is not open: read inside `async with session:`")
        readings, warm_ups = await self._warm.read(branches, shared)
        if len(readings) != len(branches):
            raise BackendError(f"the backend answered {len(readings)} of {len(branches)} branches")
        self._readings.extend(readings)
        self._warm_ups.extend(warm_ups)
        return readings

    @property
    def usage(self) -> Usage:
        """See :attr:`openjev_core.reader.Session.usage`."""
        calls = [*self._warm_ups, *self._readings]
        hits = [reading.cached_tokens for reading in self._readings]
        known = [hit for hit in hits if hit is not None]
        return Usage(
            input_tokens=sum([call.prompt_tokens for call in calls]),
            output_tokens=sum([call.output_tokens for call in calls]),
            prefix_tokens=len(self.prefix.ids),
            branches=len(self._readings),
            cached_tokens=sum(known) if len(known) == len(hits) else None,
        )

    def shown(self, questions: Mapping[str, PreparedQuestion]) -> dict[str, Any]:
        """See :meth:`openjev_core.reader.Session.shown`: every prompt, as text and as tokens."""
        prefix, decode = self.prefix, self.branch_writer.writer.tokenizer.decode
        texts: dict[int, str] = {}

        def tokens(ids: Sequence[int]) -> list[dict[str, Any]]:
            # Each id is decoded once: some tokenizers ask a server. One that is a part of a character shows as U+FFFD.
            for token in ids:
                if token not in texts:
                    texts[token] = decode([token])
            return [{"id": token, "text": texts[token]} for token in ids]

        return {
            "prefix": prefix.text,
            "prefix_tokens": tokens(prefix.ids),
            "branches": [
                {
                    "question_id": question_id,
                    "readout": index,
                    "labels": {label: option.text for label, option in variant.labelled},
                    "prompt": f"{prefix.text} {variant.words}{prefix.ending.text}",
                    "tokens": tokens(variant.branch.suffix),
                }
                for question_id, question in questions.items()
                for index, readout in enumerate(cast("BranchedQuestion", question).readouts)
                for variant in readout.variants
            ],
        }


def order_reading(reading: Reading) -> OrderReading:
    """What was read of one order, without what it took."""
    return OrderReading(reading.logprobs, reading.label_mass)


def routing_key(ids: Sequence[int]) -> str:
    """Names a prefix, so that a router can send all calls that share it to one worker."""
    return hashlib.blake2b(array("q", ids).tobytes(), digest_size=16).hexdigest()


async def first_failure(calls: Sequence[Any]) -> list[Sequence[Reading]]:
    """The results of coroutines that run at the same time; the first failure cancels the others and is raised."""
    if len(calls) == 1:
        return [await calls[0]]
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(call) for call in calls]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in running]
