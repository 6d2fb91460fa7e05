"""What the model answers when there is nothing to judge: measured once per question, kept within bounds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

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

    A branch is known by its suffix, which holds the question, its options and their order: two requests that ask the
    same thing share its prior.
    """

    def __init__(self, backend: Backend, empty_prefix: Callable[[], Prefix]) -> None:
        self._backend = backend
        self._empty_prefix = empty_prefix
        self._known: OrderedDict[tuple[int, ...], tuple[float, ...]] = OrderedDict()

    async def priors(self, compiled: Compiled) -> tuple[Priors, list[Reading]]:
        """The priors of a request's branches, and the readings that it took to learn those not yet known.

        Raises:
            BackendError: As the backend raises it.
        """
        branches = {branch.suffix: branch for question in compiled.questions for branch in question.branches}
        missing = [branch for suffix, branch in branches.items() if suffix not in self._known]
        learned, spent = await self._measure(missing) if missing else ({}, [])
        priors = {suffix: learned[suffix] if suffix in learned else self._recall(suffix) for suffix in branches}
        for suffix, logprobs in learned.items():
            self._keep(suffix, logprobs)
        return priors, spent

    async def _measure(
        self, branches: Sequence[Branch]
    ) -> tuple[dict[tuple[int, ...], tuple[float, ...]], list[Reading]]:
        prefix = self._empty_prefix().ids
        async with self._backend.prefix(prefix, key=routing_key(prefix)) as warm:
            readings, more = await warm.read(branches)
        learned = {b.suffix: reading.logprobs for b, reading in zip(branches, readings, strict=True)}
        return learned, [warm.warm_up, *more, *readings]

    def _recall(self, suffix: tuple[int, ...]) -> tuple[float, ...]:
        self._known.move_to_end(suffix)
        return self._known[suffix]

    def _keep(self, suffix: tuple[int, ...], logprobs: tuple[float, ...]) -> None:
        self._known[suffix] = logprobs
        while len(self._known) > CAPACITY:
            self._known.popitem(last=False)
