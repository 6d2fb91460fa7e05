"""Sending a compiled request to the backend and sorting what comes back."""

from __future__ import annotations

import asyncio
import hashlib
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from attrs import frozen

from openjev_core.backends.protocol import Backend, Branch, Reading, WarmPrefix
from openjev_core.errors import BackendError
from openjev_core.prompts.compiler import Compiled, CompiledQuestion, CompiledReadout, Variant

FIRST_ORDERS = 2
"""Orders read before an adaptive evaluation first asks whether more would change the answer; doubled from there."""

ReadoutReadings = Sequence[Reading]
"""The readings of one readout: of its first variants, in their order. All of them unless reading was adaptive."""

Settled = Callable[[CompiledQuestion, CompiledReadout, ReadoutReadings], bool]
"""Whether reading more orders of a readout could still change its answer noticeably."""


@frozen(kw_only=True)
class Readings:
    """Everything that the backend said about one request.

    Attributes:
        by_question: Question id to its readouts' readings.
        warm_ups: The warm-up of the prefix, and those of questions that share more.
        prefill: Seconds until the prefix was warm; next to none where the warm-up was left out.
        branches: Seconds from then until the last branch was read.
    """

    by_question: Mapping[str, Sequence[ReadoutReadings]]
    warm_ups: Sequence[Reading]
    prefill: float
    branches: float

    @cached_property
    def branch_readings(self) -> list[Reading]:
        """The readings of every branch that was read."""
        return [reading for readouts in self.by_question.values() for readout in readouts for reading in readout]

    @property
    def input_tokens(self) -> int:
        """Prompt tokens over warm-ups and branches, cached ones included."""
        return sum([reading.prompt_tokens for reading in (*self.warm_ups, *self.branch_readings)])

    @property
    def output_tokens(self) -> int:
        """Tokens produced: one per call."""
        return sum([reading.output_tokens for reading in (*self.warm_ups, *self.branch_readings)])

    @property
    def cached_tokens(self) -> int | None:
        """The branches' cache hits; ``None`` unless every branch reported its own."""
        hits = [reading.cached_tokens for reading in self.branch_readings]
        known = [hit for hit in hits if hit is not None]
        return sum(known) if len(known) == len(hits) else None


async def read(backend: Backend, compiled: Compiled, settled: Settled | None = None) -> Readings:
    """Warm the prefix, then read the branches.

    Args:
        backend: Reads.
        compiled: What to read.
        settled: Read adaptively: a few orders of each readout first, more only where this says no. Every order of
            every readout at once when ``None``.

    Raises:
        BackendError: As the backend raises it; the other branches are cancelled.
    """
    started = time.perf_counter()
    ids = compiled.prefix.ids
    async with backend.prefix(ids, key=routing_key(ids), single=compiled.branch_count == 1) as warm:
        warmed = time.perf_counter()
        progress = Progress(compiled.questions)
        warm_ups = [warm.warm_up]
        wanted = None if settled is None else FIRST_ORDERS
        while groups := progress.next_round(wanted, settled):
            warm_ups.extend(await read_groups(warm, groups))
            if wanted is None:
                break  # nothing is left
            wanted *= 2
        finished = time.perf_counter()
        return Readings(
            by_question=progress.readings,
            warm_ups=warm_ups,
            prefill=warmed - started,
            branches=finished - warmed,
        )


def routing_key(ids: Sequence[int]) -> str:
    """Names a prefix, so that a router can send all calls that share it to one worker."""
    return hashlib.blake2b(array("q", ids).tobytes(), digest_size=16).hexdigest()


class Share(NamedTuple):
    """The variants of one readout that are read in one round, and where their readings go."""

    variants: Sequence[Variant]
    readings: list[Reading]


class Group(NamedTuple):
    """What is read in one go, and how many leading suffix tokens it shares where that is worth a warm-up."""

    shares: list[Share]
    shared: int


class Progress:
    """What has been read of a request, and what is to be read next."""

    def __init__(self, questions: Sequence[CompiledQuestion]) -> None:
        self._questions = questions
        self.readings: dict[str, list[list[Reading]]] = {q.id: [[] for _ in q.readouts] for q in questions}

    def next_round(self, wanted: int | None, settled: Settled | None) -> list[Group]:
        """What to read next, in groups that are each read in one go.

        Questions that share nothing beyond the prefix are read together, each other one by itself.

        Args:
            wanted: Bring unsettled readouts to this many orders; to all of them when ``None``.
            settled: Asked of readouts that have been read in part.
        """
        together = Group([], 0)
        apart: list[Group] = []
        for question in self._questions:
            group = Group([], question.shared) if question.shared else together
            for readout, done in zip(question.readouts, self.readings[question.id], strict=True):
                if not done:
                    group.shares.append(Share(readout.variants[:wanted], done))
                elif len(done) < len(readout.variants) and not (settled and settled(question, readout, done)):
                    group.shares.append(Share(readout.variants[len(done) : wanted], done))
            if group is not together:
                apart.append(group)
        return [group for group in (together, *apart) if group.shares]


async def read_groups(warm: WarmPrefix, groups: Sequence[Group]) -> list[Reading]:
    """Read each group at once; the first failure cancels the rest and is raised as it is.

    Returns:
        Further warm-ups that were made.
    """
    if len(groups) == 1:
        return await read_group(warm, groups[0])
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(read_group(warm, group)) for group in groups]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [reading for task in running for reading in task.result()]


async def read_group(warm: WarmPrefix, group: Group) -> list[Reading]:
    """Read one group, and sort its readings to their readouts."""
    branches = [variant.branch for share in group.shares for variant in share.variants]
    readings, warm_ups = await warm.read(branches, group.shared)
    check_readings(branches, readings)
    position = iter(readings)
    for variants, of_readout in group.shares:
        of_readout.extend(islice(position, len(variants)))
    return warm_ups


def check_readings(branches: Sequence[Branch], readings: Sequence[Reading]) -> None:
    """Hold a backend's answer to the protocol: one reading per branch, one logprob per label.

    Raises:
        BackendError: Something is missing or too much.
    """
    if len(readings) != len(branches):
        raise BackendError(f"the backend answered {len(readings)} of {len(branches)} branches")
    for branch, reading in zip(branches, readings, strict=True):
        if len(reading.logprobs) != len(branch.labels):
            raise BackendError(
                f"the backend answered {len(reading.logprobs)} of a branch's {len(branch.labels)} labels"
            )
