"""What the model answers when there is nothing to judge: measured once per question, kept within bounds."""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Sequence

from openjev_core.backends.protocol import Backend, Branch, Reading
from openjev_core.engine.reading import routing_key
from openjev_core.engine.scoring import Priors
from openjev_core.prompts.chat import Prefix
from openjev_core.prompts.compiler import Compiled

CAPACITY = 4096
"""Branches whose prior is kept; the least recently used goes first."""

EMPTY_STATE = ""


class PriorCache:
    """The label logprobs of branches after an empty state.

    A branch is known by its suffix, which holds the question, its options and their order, and by the labels in the
    order in which their logprobs are wanted: two requests that ask the same thing share its prior, and two that list
    the same options in different orders do not get each other's. A digest stands for both, so that what is kept does
    not grow with the length of the questions.

    Args:
        backend: Reads.
        empty_prefix: The prompt of an empty state, tokenized at the start: some tokenizers wait for an answer.
    """

    def __init__(self, backend: Backend, empty_prefix: Prefix) -> None:
        self._backend = backend
        self._empty_prefix = empty_prefix
        self._known: OrderedDict[bytes, tuple[float, ...]] = OrderedDict()

    async def priors(self, compiled: Compiled) -> tuple[Priors, list[Reading]]:
        """The priors of a request's branches, and the readings that it took to learn those not yet known.

        Raises:
            BackendError: As the backend raises it.
        """
        branches = dict.fromkeys(branch for question in compiled.questions for branch in question.branches)
        digests = {branch: branch_digest(branch) for branch in branches}
        # Taken out now: while this request waits for the backend, others may push what it needs out of the cache.
        priors = {branch: self._known[digest] for branch, digest in digests.items() if digest in self._known}
        missing = [branch for branch in branches if branch not in priors]
        learned, spent = await self._measure(missing) if missing else ({}, [])
        priors.update(learned)
        for branch, logprobs in priors.items():
            self._keep(digests[branch], logprobs)
        return priors, spent

    async def _measure(self, branches: Sequence[Branch]) -> tuple[dict[Branch, tuple[float, ...]], list[Reading]]:
        prefix = self._empty_prefix.ids
        async with self._backend.prefix(prefix, key=routing_key(prefix)) as warm:
            readings, more = await warm.read(branches)
        learned = {branch: reading.logprobs for branch, reading in zip(branches, readings, strict=True)}
        return learned, [warm.warm_up, *more, *readings]

    def _keep(self, digest: bytes, logprobs: tuple[float, ...]) -> None:
        self._known[digest] = logprobs
        self._known.move_to_end(digest)
        while len(self._known) > CAPACITY:
            self._known.popitem(last=False)


def branch_digest(branch: Branch) -> bytes:
    """Names a branch: its suffix, and its labels in their order."""
    ids = array("q", (len(branch.suffix), *branch.suffix, *branch.labels))
    return hashlib.blake2b(ids.tobytes(), digest_size=16).digest()
