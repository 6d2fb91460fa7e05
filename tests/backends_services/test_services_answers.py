"""A service answers every type, in every order, with priors, as its model does that is asked directly."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager

import pytest
from attrs import evolve
from example_types import every_question, every_type
from live_server import live_server
from survey_type import SURVEY, SurveyAnswer
from toy_model import ToyBackend, toy_model

from openjev_core import Option, Readout, RequestError, Settings, open_engine
from openjev_core.plugins.registry import registry_of
from openjev_core.testing.scripted import engine_on

pytestmark = pytest.mark.anyio

STATE = "I was charged twice, and nobody answers. " * 3
CHAT = [{"role": "user", "content": "I was charged twice."}, {"role": "assistant", "content": "I am sorry."}]
CLOSE = 1e-9


@pytest.fixture(scope="module")
def registry():
    """openjev's own types and those of the example plugins."""
    return every_type()


@pytest.fixture(scope="module")
def questions():
    """Every example of every type."""
    return every_question()


@asynccontextmanager
async def behind(registry, engine="systemone", serving=None, **settings):
    """A server of a toy model, and an engine that asks it as a service."""
    with live_server(registry=registry, **(serving or {})) as server:
        asking = Settings(connect=server.url, engine=engine, **settings)
        async with open_engine(asking, registry=registry) as outer:
            yield server, outer


def direct(registry, **settings):
    """An engine on the same model, without a service between."""
    return engine_on(toy_model(), Settings(**settings), registry)


def numbers(answer):
    """The numbers of an answer by their paths, and what else it says."""
    found = {}

    def walk(value, path):
        if isinstance(value, dict):
            for name, inner in value.items():
                walk(inner, (*path, name))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                walk(inner, (*path, index))
        else:
            found[path] = value

    walk(answer, ())
    return found


def assert_close(expected, found):
    assert expected.keys() == found.keys()
    for name, answer in expected.items():
        for path, value in numbers(answer).items():
            other = numbers(found[name])[path]
            same = abs(value - other) < CLOSE if isinstance(value, float) else value == other
            assert same, (name, path, value, other)


@pytest.mark.parametrize("state", [STATE, CHAT, {"ticket": {"id": 7, "lines": ["é", None]}}, ""], ids=str)
@pytest.mark.parametrize("prior", ["off", "contentless"])
async def test_openjev_behind_openjev_answers_as_asked_directly(registry, questions, state, prior):
    expected = await direct(registry, prior=prior).evaluate(state=state, questions=questions)
    async with behind(registry, prior=prior) as (_, outer):
        found = await outer.evaluate(state=state, questions=questions)
    assert_close(expected.answers, found.answers)
    assert "toy/Toy-1" == found.model == outer.model.public_name


async def test_orders_are_averaged_as_directly(registry, questions):
    # A noul's labels are the engine's own words: the other order of it is another question to a service.
    asked = {name: question for name, question in questions.items() if question["type"] in {"choice", "score", "rank"}}
    expected = await direct(registry).evaluate(state=STATE, questions=asked, orders="full")
    async with behind(registry) as (_, outer):
        found = await outer.evaluate(state=STATE, questions=asked, orders="full")
    assert_close(expected.answers, found.answers)
    assert 0 < found.answers["choice 0"]["x_order_spread"]


async def test_a_reversed_noul_is_a_choice_and_its_orders_are_averaged(registry):
    question = {"type": "noul", "instructions": "Is it late?"}
    async with behind(registry) as (_, outer):
        one = (await outer.evaluate(state=STATE, questions={"q": question})).answers["q"]["noul"]
        both = (await outer.evaluate(state=STATE, questions={"q": question}, orders=2)).answers["q"]["noul"]
        reversed_choice = {"1": "the answer is no", "2": "the answer is yes"}
        asked = {"q": {"type": "choice", "instructions": "Is it late?", "criteria": reversed_choice}}
        other = (await direct(registry).evaluate(state=STATE, questions=asked)).answers["q"]["probabilities"]["2"]
    log_odds = [math.log(p / (1 - p)) for p in (one, other)]
    assert both == pytest.approx(1 / (1 + math.exp(-sum(log_odds) / 2)), abs=CLOSE)
    assert one != other


async def test_a_decision_service_answers_every_type(registry, questions):
    plain = {name: question for name, question in questions.items() if question["type"] in {"choice", "score", "rank"}}
    plain["noul 0"] = questions["noul 0"]
    expected = await direct(registry).evaluate(state=STATE, questions=plain)
    async with behind(registry, engine="decisions") as (_, outer):
        assert_close(expected.answers, (await outer.evaluate(state=STATE, questions=plain)).answers)
        every = await outer.evaluate(state=CHAT, questions=questions)
    assert list(questions) == list(every.answers)
    assert not [answer for answer in every.answers.values() if "x_error" in answer]


async def test_usage_is_the_services_own(registry, questions):
    # A service knows nothing of what a question's readouts share, so types of one readout are compared.
    plain = {name: question for name, question in questions.items() if question["type"] in {"noul", "choice", "score"}}
    expected = (await direct(registry).evaluate(state=STATE, questions=plain)).usage
    async with behind(registry, max_total_input_tokens=64) as (_, outer):
        found = (await outer.evaluate(state=STATE, questions=plain)).usage
    assert len(plain) + 1 == found.output_tokens
    for name in ("input_tokens", "output_tokens", "cached_tokens"):
        assert getattr(expected, name) == getattr(found, name)


async def test_more_readouts_than_a_call_takes_are_several_calls(registry, questions):
    asks_on = {"followup", "taxonomy"}  # each of their rounds is a call of its own
    questions = {name: question for name, question in questions.items() if question["type"] not in asks_on}
    expected = await direct(registry).evaluate(state=STATE, questions=questions)
    async with behind(registry, serving={"max_questions": 3}) as (server, outer):
        found = await outer.evaluate(state=STATE, questions=questions)
        evaluations = len(server.backend.prefixes)
        readouts = len(server.backend.branches) - 1
    assert_close(expected.answers, found.answers)
    assert 1 + -(-readouts // 3) == evaluations  # one is the first question, asked at the start


async def test_a_call_stays_within_the_bytes_that_the_service_takes(registry):
    long = {f"q{n}": {"type": "noul", "instructions": f"{n} " + "x" * 400} for n in range(8)}
    async with behind(registry, serving={"max_body_bytes": 2048}) as (server, outer):
        found = await outer.evaluate(state="Hello.", questions=long)
        assert 8 == len(found.answers)
        assert 1 + 8 / 2 == len(server.backend.prefixes)
        for state, question, said in [
            ("y" * 3000, long["q0"], "takes 2048 bytes in a call, and the state alone has more"),
            ("y" * 1000, {"type": "noul", "instructions": "x" * 1000}, r"and a call to the service has room for \d+"),
        ]:
            with pytest.raises(RequestError, match=said):
                await outer.evaluate(state=state, questions={"q": question})


async def test_own_labels_are_no_matter_to_a_service(registry):
    async with behind(registry) as (_, outer):
        assert {} == dict(outer.model.refused_labels)


async def test_label_mass_is_passed_on(registry):
    backend = ToyBackend(damage=lambda readings: [evolve(reading, label_mass=0.25) for reading in readings])
    async with behind(registry, serving={"backend": backend}) as (_, outer):
        asked = {
            "q": {"type": "noul", "instructions": "Late?"},
            "r": {"type": "choice", "criteria": {"a": "", "b": ""}},
        }
        found = await outer.evaluate(state=STATE, questions=asked)
    assert [0.25, 0.25] == [answer["x_label_mass"] for answer in found.answers.values()]


def asking_on(question):
    """Readouts in two rounds: what is asked in the second depends on what was read in the first."""
    options = tuple(Option(key=n, text=text) for n, text in enumerate(question.items))
    (first,) = yield [Readout(text="Which one?", options=options)]
    yield Readout(text=f"Is it {first.top.text}?", options=options[:2])


async def test_a_type_that_asks_on_is_answered_round_by_round():
    two_rounds = registry_of(evolve(SURVEY, readouts=asking_on, reduce=lambda _, read: last(read)))
    asked = {"q": {"type": "survey", "topic": "x", "items": ["north", "south", "west"]}}
    expected = await direct(two_rounds).evaluate(state=STATE, questions=asked)
    with live_server() as server:
        asking = Settings(connect=server.url, engine="systemone")
        async with open_engine(asking, registry=two_rounds) as outer:
            found = await outer.evaluate(state=STATE, questions=asked)
    assert_close(expected.answers, found.answers)
    assert 3 == len(server.backend.branches)


def last(distributions):
    shares = dict(enumerate(distributions[-1].probabilities))
    return SurveyAnswer(
        best=str(len(distributions)), shares={str(key): p for key, p in shares.items()}, ranking=[], mean=0.0,
        confidence=distributions[-1].confidence, x_note="",
    )  # fmt: skip
