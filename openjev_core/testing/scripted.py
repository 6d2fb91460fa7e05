"""A model without weights, which answers what a test tells it to.

Its tokenizer takes every character as one token, and every label as one more; its chat template is a plain ChatML. So
a script sees each branch's whole prompt as text, and says how probable each of its labels is.
"""

from __future__ import annotations

import itertools
import math
import re
import string
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any

from attrs import frozen

from openjev_core.asking import Asking
from openjev_core.backends.protocol import Branch, ChatTemplate, LoadedModel, Reading
from openjev_core.distribution import confidence
from openjev_core.engine.engine import Engine, engine_for
from openjev_core.engine.plan import plan
from openjev_core.plugins.registry import Registry, registry_of
from openjev_core.prompts.model import prompt_model
from openjev_core.question import Distribution, QuestionType, Readout
from openjev_core.settings import Settings

Script = Callable[[str, Sequence[str]], Sequence[float]]
"""A branch's prompt and its labels, in the options' given order, to one probability per label."""

CONTROL = {"<|im_start|>": 0x110000, "<|im_end|>": 0x110001}
FIRST_LABEL = 0x110010
STATE = "The state stands here."

TEMPLATE = """{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content | trim }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}"""


def uniform(prompt: str, labels: Sequence[str]) -> Sequence[float]:  # noqa: ARG001 - a script's form
    """The script that prefers nothing."""
    return [1 / len(labels)] * len(labels)


class ScriptedTokenizer:
    """Characters are their own ids; labels of several letters and control tokens have ids above Unicode's."""

    def __init__(self, own_labels: Sequence[str]) -> None:
        pairs = ("".join(pair) for pair in itertools.product(string.ascii_uppercase, repeat=2))
        words = list(dict.fromkeys([*pairs, *(label for label in own_labels if len(label) > 1)]))
        self.control_tokens: Mapping[str, int] = CONTROL
        self._ids = {word: FIRST_LABEL + index for index, word in enumerate(words)} | CONTROL
        self._words = {token: word for word, token in self._ids.items()}
        longest_first = sorted(words, key=len, reverse=True)
        self._plain = re.compile("|".join([*map(re.escape, longest_first), "(?s:.)"]))
        self._whole = re.compile("|".join([*map(re.escape, [*CONTROL, *longest_first]), "(?s:.)"]))

    @property
    def vocab_size(self) -> int:
        """One above the highest id."""
        return max(self._words) + 1

    def encode(self, text: str, *, control: bool = False) -> list[int]:
        """See :class:`~openjev_core.backends.protocol.Tokenizer`."""
        pieces = (self._whole if control else self._plain).findall(text)
        return [self._ids[piece] if len(piece) > 1 else ord(piece) for piece in pieces]

    def decode(self, ids: Sequence[int]) -> str:
        """See :class:`~openjev_core.backends.protocol.Tokenizer`."""
        return "".join(self._words.get(token) or chr(token) for token in ids)


class ScriptedBackend:
    """Answers by a script.

    Attributes:
        prompts: Every branch's prompt so far.
    """

    name = "scripted"
    max_prompt_tokens = 1_000_000

    def __init__(self, tokenizer: ScriptedTokenizer, script: Script) -> None:
        self._tokenizer = tokenizer
        self._script = script
        self.prompts: list[str] = []

    @asynccontextmanager
    async def prefix(
        self, ids: Sequence[int], *, key: str, branches: int | None = None
    ) -> AsyncIterator[_ScriptedPrefix]:
        """See :class:`~openjev_core.backends.protocol.Backend`."""
        del key, branches  # it reads nothing, and answers every branch alike
        yield _ScriptedPrefix(self, tuple(ids))

    async def check(self) -> None:
        """It is always well."""

    async def aclose(self) -> None:
        """There is nothing to close."""

    def answer(self, ids: Sequence[int], labels: Sequence[int]) -> tuple[float, ...]:
        """Logprobs of ``labels`` after ``ids``."""
        prompt = self._tokenizer.decode(ids)
        self.prompts.append(prompt)
        probabilities = self._script(prompt, [self._tokenizer.decode([label]) for label in labels])
        return tuple(math.log(p) if p > 0 else -math.inf for p in probabilities)


@frozen
class _ScriptedPrefix:
    _backend: ScriptedBackend
    _ids: tuple[int, ...]
    waited: float = 0.0

    @property
    def warm_up(self) -> Reading:
        return Reading((0.0,), len(self._ids), 0)

    async def read(self, branches: Sequence[Branch], shared: int = 0) -> tuple[list[Reading], list[Reading]]:  # noqa: ARG002 - nothing to warm
        length = len(self._ids)
        return [
            Reading(
                self._backend.answer((*self._ids, *branch.suffix), branch.labels), length + len(branch.suffix), length
            )
            for branch in branches
        ], []


def scripted_model(script: Script = uniform, *, own_labels: Sequence[str] = ("Yes", "No")) -> LoadedModel:
    """The scripted model, loaded.

    Args:
        script: Answers each branch.
        own_labels: Labels of question types, which its tokenizer then has as tokens.
    """
    tokenizer = ScriptedTokenizer(own_labels)
    return LoadedModel(ScriptedBackend(tokenizer, script), tokenizer, ChatTemplate(TEMPLATE), "openjev/scripted")


def scripted_engine(
    *types: QuestionType[Any, Any], script: Script = uniform, settings: Settings | None = None
) -> Engine:
    """An engine that knows ``types`` alone and answers by ``script``.

    Raises:
        ValueError: A type breaks the contract as a record.
    """
    registry = registry_of(*types)
    return engine_on(scripted_model(script, own_labels=registry.labels), settings or Settings(), registry)


def engine_on(model: LoadedModel, settings: Settings, registry: Registry) -> Engine:
    """An engine on a loaded model that takes tokens.

    Raises:
        StartupError: The tokenizer or the template cannot carry the prompts, or the calibration is of another.
    """
    return engine_for(prompt_model(model, settings, registry.labels), settings, registry)


def rendered_prompts(
    question_type: QuestionType[Any, Any], question: Any, *, state: str = STATE, script: Script = uniform
) -> str:
    """What the model reads for a question: the shared prefix, then each readout's own part, round by round.

    Args:
        question_type: The question's type.
        question: An instance of the type's question class.
        state: The state that the question is about.
        script: Answers a type that asks on once it knows what was read.

    Returns:
        The prompts in ChatML, whatever model is installed, so that a snapshot of them changes with the type alone.

    Raises:
        InvalidQuestion, RequestError: As for a request.
        PluginError: The type broke its contract.
    """
    engine = scripted_engine(question_type)
    question_type = engine.registry.types[question_type.name]
    session = engine.reader.session(state)
    asking = Asking(question_type, question, engine.limits.max_answers_per_question)
    found: list[Distribution] = []
    parts: list[str] = []
    with closing(asking):
        while not asking.rounds or asking.waits:
            planned = plan(asking, 1, found[len(found) - asking.waits :])
            prepared = session.prepare(question_type, planned, question=question)
            shown = session.shown({"question": prepared})
            if asking.rounds > 1 and prepared.readouts:
                parts.append(f"=== round {asking.rounds}, asked once these were read ===")
            for readout, branch in zip(prepared.readouts, shown["branches"], strict=True):
                parts.append(f"=== readout {len(found)} ===\n{branch['prompt'].removeprefix(shown['prefix'])}")
                probabilities = tuple(script(branch["prompt"], list(branch["labels"])))
                found.append(distribution_of(readout.planned.readout, probabilities))
    count = len(found)
    prefix = f"=== prefix, shared by {count} readout{'s' * (count != 1)} ===\n{shown['prefix']}"
    return "\n".join([prefix, *parts])


def distribution_of(readout: Readout, probabilities: Sequence[float]) -> Distribution:
    """A readout's distribution, as an engine with the default settings makes it of these probabilities."""
    alone = len(probabilities) == 1
    sure = 1.0 if alone else confidence(probabilities, formula="entropy", ordered=readout.ordered)
    logprobs = () if alone else (tuple(math.log(p) if p > 0 else -math.inf for p in probabilities),)
    return Distribution(readout, tuple(probabilities), sure, logprobs=logprobs)
