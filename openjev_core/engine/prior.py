"""What the model answers when there is nothing to judge: measured once per question, kept within bounds."""

from __future__ import annotations

import hashlib
import time
from array import array
from collections.abc import Sequence

from attrs import frozen

from openjev_core.backends.protocol import Backend, Branch, Reading
from openjev_core.engine.admission import Admission
from openjev_core.engine.reading import routing_key
from openjev_core.engine.scoring import Priors
from openjev_core.prompts.chat import Prefix
from openjev_core.prompts.compiler import Compiled
from openjev_core.recent import Recent

CAPACITY = 4096
"""Branches whose prior is kept; the least recently used goes first."""

EMPTY_STATE = ""


@frozen
class Spent:
    """What it took to learn the priors of a request that were not yet known.

    Attributes:
        readings: Of the warm-up and of every branch.
        prefill: Seconds until the empty state's prompt was warm.
        branches: Seconds from then until the last branch was read.
    """

    readings: Sequence[Reading] = ()
    prefill: float = 0.0
    branches: float = 0.0


class PriorCache:
    """The label logprobs of branches after an empty state.

    A branch is known by its suffix, which holds the question, its options and their order, and by the labels in the
    order in which their logprobs are wanted: two requests that ask the same thing share its prior, and two that list
    the same options in different orders do not get each other's. A digest stands for both, so that what is kept does
    not grow with the length of the questions.

    Args:
        backend: Reads.
        empty_prefix: The prompt of an empty state, tokenized at the start: some tokenizers wait for an answer.
        admission: Told which branches are being read.
    """

    def __init__(self, backend: Backend, empty_prefix: Prefix, admission: Admission) -> None:
        self._backend = backend
        self._admission = admission
        self._empty_prefix = empty_prefix
        self._known: Recent[bytes, tuple[float, ...]] = Recent(CAPACITY)

    async def priors(self, compiled: Compiled) -> tuple[Priors, Spent]:
        """The priors of a request's branches, and what it took to learn them.

        Raises:
            BackendError: As the backend raises it.
        """
        branches = dict.fromkeys(branch for question in compiled.questions for branch in question.branches)
        digests = {branch: branch_digest(branch) for branch in branches}
        # Taken out now: while this request waits for the backend, others may push what it needs out of the cache.
        found = {branch: self._known.get(digest) for branch, digest in digests.items()}
        priors = {branch: logprobs for branch, logprobs in found.items() if logprobs is not None}
        missing = [branch for branch in branches if branch not in priors]
        learned, spent = await self._measure(missing) if missing else ({}, Spent())
        priors.update(learned)
        for branch, logprobs in learned.items():
            self._known.keep(digests[branch], logprobs, 1)
        return priors, spent

    async def _measure(self, branches: Sequence[Branch]) -> tuple[dict[Branch, tuple[float, ...]], Spent]:
        prefix = self._empty_prefix.ids
        started = time.perf_counter()
        with self._admission.reading(len(branches)):
            async with self._backend.prefix(prefix, key=routing_key(prefix)) as warm:
                warmed = time.perf_counter()
                readings, more = await warm.read(branches)
                finished = time.perf_counter()
        learned = {branch: reading.logprobs for branch, reading in zip(branches, readings, strict=True)}
        spent = Spent([warm.warm_up, *more, *readings], prefill=warmed - started, branches=finished - warmed)
        return learned, spent


def branch_digest(branch: Branch) -> bytes:
    """Names a branch: its suffix, and its labels in their order."""
    ids = array("q", (len(branch.suffix), *branch.suffix, *branch.labels))
    return hashlib.blake2b(ids.tobytes(), digest_size=16).digest()
