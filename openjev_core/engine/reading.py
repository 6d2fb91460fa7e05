"""Sending a compiled request to the backend and sorting what comes back."""

from __future__ import annotations

import asyncio
import hashlib
import time
from array import array
from collections.abc import Mapping, Sequence

from attrs import frozen

from openjev_core.backends.protocol import Backend, Reading, WarmPrefix
from openjev_core.prompts.compiler import Compiled, CompiledQuestion


@frozen(kw_only=True)
class Readings:
    """Everything that the backend said about one request.

    Attributes:
        by_question: Question id to its branches' readings, in the order of ``CompiledQuestion.branches``.
        warm_ups: The warm-up of the prefix, and those of questions that share more.
        prefill: Seconds until the prefix was warm.
        branches: Seconds from then until the last branch was read.
    """

    by_question: Mapping[str, Sequence[Reading]]
    warm_ups: Sequence[Reading]
    prefill: float
    branches: float

    @property
    def input_tokens(self) -> int:
        """Prompt tokens over warm-ups and branches, cached ones included."""
        return sum(reading.prompt_tokens for reading in self._all())

    @property
    def output_tokens(self) -> int:
        """Tokens produced: one per call."""
        return sum(reading.output_tokens for reading in self._all())

    @property
    def cached_tokens(self) -> int | None:
        """The branches' cache hits; ``None`` unless every branch reported its own."""
        hits = [reading.cached_tokens for readings in self.by_question.values() for reading in readings]
        known = [hit for hit in hits if hit is not None]
        return sum(known) if len(known) == len(hits) else None

    def _all(self) -> list[Reading]:
        return [*self.warm_ups, *(reading for readings in self.by_question.values() for reading in readings)]


async def read(backend: Backend, compiled: Compiled) -> Readings:
    """Warm the prefix, then read every branch.

    Raises:
        BackendError: As the backend raises it; the other branches are cancelled.
    """
    started = time.perf_counter()
    async with backend.prefix(compiled.prefix.ids, key=routing_key(compiled.prefix.ids)) as warm:
        warmed = time.perf_counter()
        by_question, warm_ups = await read_groups(warm, groups_of(compiled.questions))
        finished = time.perf_counter()
        return Readings(
            by_question=by_question,
            warm_ups=[warm.warm_up, *warm_ups],
            prefill=warmed - started,
            branches=finished - warmed,
        )


def routing_key(ids: Sequence[int]) -> str:
    """Names a prefix, so that a router can send all calls that share it to one worker."""
    return hashlib.blake2b(array("q", ids).tobytes(), digest_size=16).hexdigest()


def groups_of(questions: Sequence[CompiledQuestion]) -> list[list[CompiledQuestion]]:
    """Which questions are read in one go: all that share nothing beyond the prefix, and each other one alone."""
    plain = [question for question in questions if not question.shared]
    sharing = [[question] for question in questions if question.shared]
    return [plain, *sharing] if plain else sharing


async def read_groups(
    warm: WarmPrefix, groups: Sequence[Sequence[CompiledQuestion]]
) -> tuple[dict[str, Sequence[Reading]], list[Reading]]:
    """Read each group at once; the first failure cancels the rest and is raised as it is."""
    if len(groups) == 1:
        results = [await _read_group(warm, groups[0])]
    else:
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(_read_group(warm, group)) for group in groups]
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        results = [task.result() for task in running]
    by_question: dict[str, Sequence[Reading]] = {}
    warm_ups: list[Reading] = []
    for readings, more in results:
        by_question.update(readings)
        warm_ups.extend(more)
    return by_question, warm_ups


async def _read_group(
    warm: WarmPrefix, group: Sequence[CompiledQuestion]
) -> tuple[dict[str, Sequence[Reading]], list[Reading]]:
    branches = [branch for question in group for branch in question.branches]
    readings, warm_ups = await warm.read(branches, group[0].shared)
    sorted_out: dict[str, Sequence[Reading]] = {}
    position = 0
    for question in group:
        count = len(question.branches)
        sorted_out[question.id] = readings[position : position + count]
        position += count
    return sorted_out, warm_ups
