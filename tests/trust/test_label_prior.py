"""Dividing out what the model answers when there is nothing to judge."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import openjev_choice
import pytest
from attrs import evolve

from openjev_core import Settings
from openjev_core.engine.engine import engine_for
from openjev_core.recent import ENTRY_BYTES, Recent, bytes_of
from openjev_core.testing import scripted_engine

(CHOICE,) = openjev_choice.openjev_question_types()


def question(*names):
    return {"type": "choice", "instructions": "Which?", "criteria": dict.fromkeys(names)}


def script(prompt, labels):
    """Always prefers the option shown first; a state that speaks of red makes it likelier wherever it stands."""
    weights = dict(zip("AB", (0.8, 0.2), strict=True))
    if "state of red" in prompt:
        red = next(label for label in "AB" if f"{label}: Red" in prompt)
        weights[red] *= 3
    return [weights[label] / sum(weights.values()) for label in labels]


@pytest.fixture
def engine():
    return scripted_engine(CHOICE, script=script, settings=Settings(prior="contentless"))


def ask(engine, *names, state="A state of red.", **options):
    return asyncio.run(engine.evaluate(state=state, questions={"q": question(*names)}, **options))


def test_what_the_empty_state_says_is_divided_out(engine):
    answer = ask(engine, "Blue", "Red").answers["q"]

    assert pytest.approx(0.75) == answer["probabilities"]["Red"]


def test_without_it_the_preference_stays():
    engine = scripted_engine(CHOICE, script=script)

    assert pytest.approx(0.2 * 3 / (0.8 + 0.2 * 3)) == ask(engine, "Blue", "Red").answers["q"]["probabilities"]["Red"]


def test_it_is_measured_once_per_question(engine):
    first, second = ask(engine, "Blue", "Red"), ask(engine, "Blue", "Red", state="Another state of red.")

    assert 4 == first.usage.output_tokens
    assert 2 == second.usage.output_tokens


class Watched:
    """A backend that notes how many branches are being read, and takes so long over each of its prefixes."""

    def __init__(self, backend, seconds):
        self._backend, self._seconds = backend, seconds
        self.engine, self.seen = None, []

    def __getattr__(self, name):
        return getattr(self._backend, name)

    @asynccontextmanager
    async def prefix(self, ids, *, key, branches=None):
        self.seen.append(self.engine.branches_in_flight)
        await asyncio.sleep(self._seconds)
        async with self._backend.prefix(ids, key=key, branches=branches) as warm:
            yield warm


def test_its_reads_count_where_others_do(engine):
    slow = Watched(engine.reader.backend, 0.05)
    model = evolve(engine.model, reader=evolve(engine.reader, backend=slow))
    slow.engine = engine_for(model, engine.settings, engine.registry)
    first, second = ask(slow.engine, "Blue", "Red"), ask(slow.engine, "Blue", "Red")
    assert [1, 1, 1] == slow.seen
    assert 0 == slow.engine.branches_in_flight
    # Two prefixes were warmed, one after the other, with a sleep of 0.05 s each.
    assert first.timings.prefill > 0.08
    assert first.usage.input_tokens > second.usage.input_tokens


def test_the_same_options_in_another_order_get_their_own_prior():
    """Averaged over orders, both lists lead to the same prompts; the values must not be swapped."""

    def leaning(prompt, labels):
        """Leans to red by nine to one whatever the state says, and a state of red doubles that."""
        odds = 18 if "state of red" in prompt else 9
        return [odds / (odds + 1) if f"{label}: Red" in prompt else 1 / (odds + 1) for label in labels]

    engine = scripted_engine(CHOICE, script=leaning, settings=Settings(prior="contentless"))
    first = ask(engine, "Blue", "Red", orders="full").answers["q"]["probabilities"]
    second = ask(engine, "Red", "Blue", orders="full").answers["q"]["probabilities"]

    assert pytest.approx(2 / 3) == first["Red"]
    assert pytest.approx(2 / 3) == second["Red"]


def entry(options):
    """Bytes that the prior of so many options takes."""
    return ENTRY_BYTES + bytes_of(bytes(16), tuple(float(number) for number in range(options)))


@pytest.fixture
def keeping(engine, monkeypatch):
    """The engine, made to keep so many priors of two options."""

    def keep(count):
        monkeypatch.setattr(engine._readings.priors, "_known", Recent(count * entry(2)))
        return engine

    return keep


def test_what_is_kept_is_bounded(keeping):
    engine = keeping(3)
    for name in ("One", "Two", "Three", "Four", "Five"):
        ask(engine, name, "Red")
    known = engine._readings.priors._known
    assert (3, 3 * entry(2)) == (len(known), known.held)


def test_what_was_asked_last_is_kept_longest(keeping):
    engine = keeping(2)
    for name in ("One", "Two", "One", "Three"):
        ask(engine, name, "Red")
    assert 2 == ask(engine, "One", "Red").usage.output_tokens
    assert 4 == ask(engine, "Two", "Red").usage.output_tokens


def test_a_request_of_more_questions_than_are_kept_is_answered(keeping):
    engine = keeping(1)
    questions = {name: question(name, "Red") for name in ("One", "Two", "Three")}
    for _ in range(2):
        evaluation = asyncio.run(engine.evaluate(state="A state of red.", questions=questions))
        assert [pytest.approx(0.75)] * 3 == [a["probabilities"]["Red"] for a in evaluation.answers.values()]
