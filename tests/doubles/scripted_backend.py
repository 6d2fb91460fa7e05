"""A backend in memory that answers by a script, and can be told to hang, fail or lie."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from attrs import define, field, frozen
from chatml_model import chat_template, chatml_tokenizer

from openjev_core.backends.protocol import LoadedModel, Reading
from openjev_core.plugins.registry import load_registry, registry_of
from openjev_core.settings import Settings
from openjev_core.testing.scripted import engine_on


def equal(prompt, labels):
    """The script that prefers nothing."""
    return [0.0] * len(labels)


def preferring(**logprobs):
    """A script that gives a label what its text is named with, and -10 to every other."""
    return lambda prompt, labels: [logprobs.get(label, -10.0) for label in labels]


@define
class ScriptedBackend:
    """Answers each branch by its whole prompt as text and its labels as text.

    Attributes:
        script: ``(prompt, labels)`` to one logprob per label.
        max_prompt_tokens: As a backend promises it.
        cached: What each branch reports as cached, in turn, the last one for ever; ``"prefix"`` for all of its prefix.
        seconds: How long each read takes.
        waited: Seconds that each prefix says it waited.
        error: Raised by reads and health checks while set.
        damage: Applied to the list of readings before it is returned.
        gate: Reads wait until it is set, when there is one.
        checked: Health checks so far.
        prefixes, announced, branches, shares: What was asked for.
        open: Prefixes that are held now.
        running: Reads that are in progress.
        cancelled: Reads that were cancelled.
    """

    script: object = equal
    max_prompt_tokens: int = 100_000
    cached: tuple | str = (None,)
    seconds: float = 0.0
    waited: float = 0.0
    error: BaseException | None = None
    damage: object = None
    gate: asyncio.Event | None = None
    checked: int = 0
    prefixes: list = field(factory=list)
    announced: list = field(factory=list)
    branches: list = field(factory=list)
    shares: list = field(factory=list)
    open: int = 0
    running: int = 0
    cancelled: int = 0
    name: str = "scripted"
    tokenizer: object = field(factory=chatml_tokenizer)

    @asynccontextmanager
    async def prefix(self, ids, *, key, branches=None):
        assert ids
        self.prefixes.append((tuple(ids), key))
        self.announced.append(branches)
        self.open += 1
        try:
            yield _Prefix(self, tuple(ids))
        finally:
            self.open -= 1

    async def check(self):
        self.checked += 1
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error

    async def aclose(self):
        pass

    @property
    def prompts(self):
        """Every branch's whole prompt as text, in reading order."""
        return [self.tokenizer.decode([*prefix, *branch.suffix]) for prefix, branch in self.branches]


@frozen
class _Prefix:
    backend: ScriptedBackend
    ids: tuple

    @property
    def waited(self):
        return self.backend.waited

    @property
    def warm_up(self):
        return Reading((0.0,), len(self.ids), 0)

    async def read(self, branches, shared=0):
        backend = self.backend
        backend.shares.append(shared)
        backend.running += 1
        try:
            if backend.gate is not None:
                await backend.gate.wait()
            await asyncio.sleep(backend.seconds)
        except asyncio.CancelledError:
            backend.cancelled += 1
            raise
        finally:
            backend.running -= 1
        if backend.error is not None:
            raise backend.error
        readings = [self._reading(branch) for branch in branches]
        warm_ups = [Reading((0.0,), len(self.ids) + shared, len(self.ids))] if shared else []
        return (readings if backend.damage is None else backend.damage(readings)), warm_ups

    def _reading(self, branch):
        backend, tokenizer = self.backend, self.backend.tokenizer
        assert branch.suffix
        assert len(branch.labels) == len(set(branch.labels))
        number = len(backend.branches)
        backend.branches.append((self.ids, branch))
        prompt = tokenizer.decode([*self.ids, *branch.suffix])
        return Reading(
            tuple(backend.script(prompt, [tokenizer.decode([label]) for label in branch.labels])),
            len(self.ids) + len(branch.suffix),
            len(self.ids) if backend.cached == "prefix" else backend.cached[min(number, len(backend.cached) - 1)],
        )


def scripted_engine(backend=None, *types, template=None, **settings):
    """An engine on a scripted backend.

    Args:
        backend: The backend; one that prefers nothing when ``None``.
        types: Its question types; the installed ones when none are given.
        template: The chat template; :data:`chatml_model.CHATML` when ``None``.
        settings: Fields of its settings.
    """
    model = LoadedModel(
        backend or ScriptedBackend(),
        chatml_tokenizer(),
        chat_template() if template is None else chat_template(template),
        "openjev/scripted",
    )
    return engine_on(model, Settings(**settings), registry_of(*types) if types else load_registry())
