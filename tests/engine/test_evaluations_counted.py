"""What an evaluation answers, and what it counts."""

from __future__ import annotations

import math

import pytest
from attrs import evolve
from scripted_backend import ScriptedBackend, preferring, scripted_engine

from openjev_core.errors import BackendError
from openjev_core.plugins.registry import load_registry

pytestmark = pytest.mark.anyio

NOUL = {"type": "noul", "instructions": "Is it?"}
CHOICE = {"type": "choice", "instructions": "Which?", "criteria": {"x": "one", "y": "two", "z": "three"}}
SCORE = {"type": "score", "instructions": "How much?", "criteria": ["none", {"a": 10**30}, ["some"], "all"]}
LN3 = math.log(3)


async def answered(script, question, **settings):
    evaluation = await scripted_engine(ScriptedBackend(script), **settings).evaluate(
        state="S.", questions={"q": question}
    )
    return dict(evaluation.answers["q"])


async def test_a_noul_is_the_probability_of_yes():
    answer = await answered(preferring(Yes=LN3, No=0.0), NOUL)
    assert {"type": "noul", "noul": pytest.approx(0.75)} == answer


async def test_a_choice_has_every_name_and_the_first_of_equals():
    answer = await answered(preferring(A=0.0, B=LN3, C=LN3), CHOICE)
    assert ["type", "choice", "probabilities", "confidence"] == list(answer)
    assert "y" == answer["choice"]
    assert {"x": 1 / 7, "y": 3 / 7, "z": 3 / 7} == pytest.approx(answer["probabilities"])
    assert pytest.approx(1 + (1 / 7 * math.log(1 / 7) + 6 / 7 * math.log(3 / 7)) / LN3) == answer["confidence"]


async def test_a_score_is_an_expectation_and_echoes_its_levels():
    answer = await answered(preferring(A=0.0, B=LN3, C=-math.inf, D=LN3), SCORE)
    assert pytest.approx(3 / 7 + 9 / 7) == answer["score"]
    assert {"0": "none", "1": {"a": 10**30}, "2": ["some"], "3": "all"} == answer["legend"]
    assert {"0": 1 / 7, "1": 3 / 7, "2": 0.0, "3": 3 / 7} == pytest.approx(answer["probabilities"])


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ({**CHOICE, "criteria": {"a": "1", "b": "2"}}, 0.5),  # (3/4 - 1/2) / (1/2)
        ({"type": "score", "criteria": ["1", "2"]}, 0.5),  # 1 - 1/4 / (1/2)
    ],
)
async def test_the_other_formula_of_confidence(question, expected):
    answer = await answered(preferring(A=LN3, B=0.0), question, confidence="jev")
    assert pytest.approx(expected) == answer["confidence"]


async def test_the_temperature_divides_the_logprobs():
    answer = await answered(preferring(Yes=2 * LN3, No=0.0), NOUL, temperature=2.0)
    assert pytest.approx(0.75) == answer["noul"]


@pytest.mark.parametrize(
    "names", [["é", "e\u0301"], ["", " "], ["__proto__", "constructor"], ["1", "0"], ["a\nb", "a b"]]
)
async def test_names_are_kept_byte_for_byte(names):
    answer = await answered(preferring(A=0.0, B=1.0), {**CHOICE, "criteria": dict.fromkeys(names)})
    assert names == list(answer["probabilities"])
    assert names[1] == answer["choice"]


QUESTIONS = {"b": CHOICE, "a": NOUL, "é.\n": SCORE}


async def test_answers_stand_in_the_order_of_the_request():
    evaluation = await scripted_engine().evaluate(state="S.", questions=QUESTIONS)
    body = evaluation.body()
    assert ["model", "answers", "usage"] == list(body)
    assert "openjev/scripted" == body["model"]
    assert list(QUESTIONS) == list(body["answers"])


async def test_usage_is_what_the_backend_counted():
    backend = ScriptedBackend()
    evaluation = await scripted_engine(backend).evaluate(state="S.", questions=QUESTIONS)
    ((prefix, _),) = backend.prefixes
    suffixes = [len(branch.suffix) for _, branch in backend.branches]
    assert len(prefix) + sum(len(prefix) + suffix for suffix in suffixes) == evaluation.usage.input_tokens
    assert 3 + 1 == evaluation.usage.output_tokens
    assert (3, len(prefix)) == (evaluation.usage.branches, evaluation.usage.prefix_tokens)
    assert {int} == {type(count) for count in evaluation.body()["usage"].values()}


@pytest.mark.parametrize(
    ("cached", "expected"),
    [((None,), None), ((10,), 30), ((0,), 0), ((10, None, 10), None), ((10, 20, 30), 60), ((None, None, 5), None)],
)
async def test_cached_tokens_are_told_only_when_every_branch_tells(cached, expected):
    evaluation = await scripted_engine(ScriptedBackend(cached=cached)).evaluate(state="S.", questions=QUESTIONS)
    assert expected == evaluation.usage.cached_tokens


async def test_one_prefix_one_routing_key():
    backend = ScriptedBackend()
    engine = scripted_engine(backend)
    for state in ("S.", "S.", "T."):
        await engine.evaluate(state=state, questions=QUESTIONS)
    keys = [key for _, key in backend.prefixes]
    assert keys[0] == keys[1] != keys[2]
    assert 0 == backend.open


@pytest.mark.parametrize(
    ("questions", "orders", "most"),
    [
        ({"a": NOUL}, 1, 1),
        ({"a": CHOICE}, 2, 2),
        ({"a": CHOICE}, "full", 3),
        ({"a": NOUL, "b": CHOICE}, 1, 2),
    ],
)
async def test_a_backend_is_told_how_many_branches_come_at_most(questions, orders, most):
    backend = ScriptedBackend()
    evaluation = await scripted_engine(backend).evaluate(state="S.", questions=questions, orders=orders)
    assert [most] == backend.announced
    assert evaluation.usage.output_tokens == len(backend.branches) + 1


async def test_questions_may_be_instances_of_their_class():
    types = load_registry().types
    asked = {name: kind.examples[0] for name, kind in types.items()}
    wired = {name: scripted_engine().converter.wire_question(types[name], question) for name, question in asked.items()}
    first = await scripted_engine().evaluate(state="S.", questions=asked)
    second = await scripted_engine().evaluate(state="S.", questions=wired)
    assert first.answers == second.answers


def short(readings):
    return readings[:-1]


def long(readings):
    return [*readings, readings[0]]


def without_a_label(readings):
    return [evolve(readings[0], logprobs=readings[0].logprobs[:-1]), *readings[1:]]


def all_logprobs(value):
    return lambda readings: [evolve(reading, logprobs=(value,) * len(reading.logprobs)) for reading in readings]


DAMAGE = [
    (short, "answered 2 of 3 branches"),
    (long, "answered 4 of 3 branches"),
    (without_a_label, "answered 2 of a branch's 3 labels"),
    (all_logprobs(math.nan), "not a number"),
    (all_logprobs(math.inf), "not a number"),
    (all_logprobs(-math.inf), "every label probability 0"),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGE)
async def test_an_answer_that_is_no_distribution_is_an_error_and_never_a_number(damage, said):
    backend = ScriptedBackend(damage=damage)
    with pytest.raises(BackendError, match=said):
        await scripted_engine(backend).evaluate(state="S.", questions=QUESTIONS, partial=True)
    assert 0 == backend.open


BIAS = {"A": 0.0, "B": -1.0, "C": -2.0}
MERIT = {"one": 0.0, "two": -0.5, "three": -3.0}


def by_text_and_label(prompt, labels):
    """Every label has a bias of its own, every option a merit: what averaging must keep and what it must cancel."""
    shown = dict(line.split(": ", 1) for line in prompt.rsplit("Options:\n", 1)[1].split("<|im_end|>")[0].splitlines())
    return [BIAS[label] + MERIT[shown[label]] for label in labels]


@pytest.mark.parametrize("criteria", [{"x": "one", "y": "two", "z": "three"}, {"z": "three", "x": "one", "y": "two"}])
async def test_all_rotations_cancel_a_preference_for_a_label_and_keep_each_option_its_own(criteria):
    engine = scripted_engine(ScriptedBackend(by_text_and_label), orders="full")
    evaluation = await engine.evaluate(state="S.", questions={"q": {**CHOICE, "criteria": criteria}})
    answer = evaluation.answers["q"]
    total = sum(map(math.exp, MERIT.values()))
    expected = {name: math.exp(MERIT[text]) / total for name, text in criteria.items()}
    assert expected == pytest.approx(answer["probabilities"])
    assert list(criteria) == list(answer["probabilities"])
    assert answer["x_order_spread"] > 0.1
    assert 3 + 1 == evaluation.usage.output_tokens


async def test_one_order_keeps_the_preference_and_tells_no_spread():
    answer = await answered(by_text_and_label, CHOICE)
    weights = {"x": 1.0, "y": math.exp(-1.5), "z": math.exp(-5)}
    assert {name: w / sum(weights.values()) for name, w in weights.items()} == pytest.approx(answer["probabilities"])
    assert "x_order_spread" not in answer
