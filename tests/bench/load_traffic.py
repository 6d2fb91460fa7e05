"""What the load sends, and what must come back: every answer is known beforehand, number by number."""

from __future__ import annotations

import gzip
import random
from contextlib import asynccontextmanager

import orjson
from attrs import evolve, field, frozen
from bench_requests import questions, state
from sglang_double_model import logprob

from openjev_core.backends.protocol import LoadedModel, Reading
from openjev_core.plugins.registry import load_registry
from openjev_core.prompts.tokenizer import load_tokenizer
from openjev_core.settings import Settings
from openjev_core.testing.scripted import engine_on

STATES = 40
POOL = 64
TOLERANCE = 1e-6


@frozen
class LocalDouble:
    """The double's numbers without the double: a backend that works them out in this process."""

    name: str = "local"
    max_prompt_tokens: int = 1_000_000

    @asynccontextmanager
    async def prefix(self, ids, *, key, branches=None):
        yield _LocalPrefix(tuple(ids))


@frozen
class _LocalPrefix:
    ids: tuple
    waited: float = 0.0
    warm_up: Reading = Reading((0.0,), 0)

    async def read(self, branches, shared=0):
        prompts = [((*self.ids, *branch.suffix), branch.labels) for branch in branches]
        return [Reading(tuple(logprob(ids, label) for label in labels), len(ids)) for ids, labels in prompts], []


@frozen
class Traffic:
    """A pool of states and questions, with the answer to each pair.

    Attributes:
        states: Texts.
        pool: Questions, each in words of its own.
        answers: ``answers[state][question]``, as the API must give it.
    """

    states: list
    pool: list
    answers: list
    chance: random.Random = field(factory=lambda: random.Random(7))

    def request(self, asked):
        """A body with this many questions about one state, and what to expect: question id to answer."""
        which = self.chance.randrange(len(self.states))
        chosen = self.chance.sample(range(len(self.pool)), asked)
        ids = [f"{self.chance.getrandbits(48):x}" for _ in chosen]
        body = {
            "model": "jev-latest",
            "state": self.states[which],
            "questions": {name: self.pool[number] for name, number in zip(ids, chosen, strict=True)},
        }
        expected = {name: self.answers[which][number] for name, number in zip(ids, chosen, strict=True)}
        return orjson.dumps(body), expected

    def bad_request(self):
        """A body that must be refused, its headers, and the status that it must get."""
        good, _ = self.request(2)
        kinds = [
            (good[: self.chance.randrange(1, len(good))], (), 422),
            (good.replace(b'"noul"', b'"nuol"').replace(b'"choice"', b'"chioce"').replace(b'"score"', b"7"), (), 422),
            (b'{"model": "jev-latest", "state": "x", "questions": {}}', (), 422),
            (good.replace(b'"state":"', b'"state":"\xff'), (), 422),
            (gzip.compress(good)[:-9], ("Content-Encoding: gzip",), 400),
            (good, ("Content-Encoding: br",), 415),
        ]
        return self.chance.choice(kinds)


async def make_traffic(source, tokens):
    """Traffic about states of ``tokens`` tokens, prepared with the tokenizer at ``source``."""
    tokenizer, template = load_tokenizer(source, None)
    model = LoadedModel(backend=LocalDouble(), tokenizer=tokenizer, template=template, public_name="local")
    engine = engine_on(model, Settings(max_total_input_tokens=100_000_000), load_registry())
    chance = random.Random(1)
    states = [state(tokens, chance) for _ in range(STATES)]
    pool = questions(POOL)
    answers = [list((await engine.evaluate(state=text, questions=pool)).answers.values()) for text in states]
    return Traffic(states, list(pool.values()), answers)


def wrong_answers(expected, body):
    """What of an answer does not belong to its question."""
    answers = body["answers"]
    if list(answers) != list(expected):
        return [f"asked {list(expected)}, answered {list(answers)}"]
    return [f"{name}: {answers[name]}, not {want}" for name, want in expected.items() if not same(want, answers[name])]


def same(want, got):
    """Whether two JSON values are equal, their numbers nearly."""
    if isinstance(want, float) and isinstance(got, (int, float)):
        return abs(want - got) < TOLERANCE
    if isinstance(want, dict) and isinstance(got, dict):
        return want.keys() == got.keys() and all(same(want[key], got[key]) for key in want)
    return want == got


def shifted(traffic):
    """The same traffic, expecting every answer of another question: what a check that works must refuse."""
    return evolve(traffic, answers=[[*row[1:], row[0]] for row in traffic.answers])
