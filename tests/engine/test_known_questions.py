"""A request's questions are structured once: the same mapping for the same JSON, of the types that allow it alone."""

from __future__ import annotations

import pytest

from openjev_core import RequestError
from openjev_core.engine import intake as intakes
from openjev_core.engine.intake import Intake
from openjev_core.plugins.registry import load_registry
from openjev_core.plugins.structuring import QuestionConverter

CHOICE = {"type": "choice", "criteria": {"one": None, "two": "2"}}
SCORE = {"type": "score", "criteria": ["low", "high"]}
NOUL = {"type": "noul", "instructions": "Is it?"}


@pytest.fixture
def intake():
    return Intake(QuestionConverter(load_registry(), {"choice", "score"}), "served", max_questions=3)


def structured(intake, questions, state="A state."):
    return intake.structure({"model": "served", "state": state, "questions": questions}).questions


def test_the_same_json_gives_the_same_questions_whatever_the_state(intake):
    first = structured(intake, {"a": dict(CHOICE), "b": dict(SCORE)})
    assert first is structured(intake, {"a": dict(CHOICE), "b": dict(SCORE)}, state=["Another."])
    assert ["choice", "score"] == [asked.type.name for asked in first.values()]
    with pytest.raises(TypeError):
        first["c"] = first["a"]


@pytest.mark.parametrize(
    "other",
    [
        {"b": SCORE, "a": CHOICE},
        {"a": CHOICE},
        {"a": CHOICE, "c": SCORE},
        {"a": CHOICE, "b": {**SCORE, "criteria": ["high", "low"]}},
    ],
)
def test_other_json_gives_its_own(intake, other):
    fresh = Intake(QuestionConverter(load_registry()), "served", max_questions=3)
    structured(intake, {"a": CHOICE, "b": SCORE})
    expected, found = structured(fresh, other), structured(intake, other)
    assert [*expected.items()] == [*found.items()]


def test_with_one_of_another_type_nothing_is_kept(intake):
    mixed = {"a": CHOICE, "b": NOUL}
    assert structured(intake, mixed)["b"].question is not structured(intake, mixed)["b"].question


@pytest.mark.parametrize(
    "wrong", [{}, {"a": {**CHOICE, "x": 1}}, {"": CHOICE}, dict.fromkeys("abcd", CHOICE), {"a": {"type": "none"}}]
)
def test_what_is_refused_is_refused_again(intake, wrong):
    problems = []
    for _ in range(2):
        with pytest.raises(RequestError) as refused:
            structured(intake, wrong)
        problems.append(refused.value.problems)
    assert problems[0] == problems[1]


def test_very_long_ones_are_not_kept(intake, monkeypatch):
    monkeypatch.setattr(intakes, "KNOWN_SET_BYTES", 40)
    assert structured(intake, {"a": CHOICE}) is not structured(intake, {"a": CHOICE})


@pytest.mark.parametrize("number", [2**64, 10**100])
def test_an_integer_that_the_key_cannot_hold_is_no_obstacle(intake, number):
    asked = {"a": {**CHOICE, "instructions": [number]}}
    for _ in range(2):
        assert [number] == structured(intake, asked)["a"].question.instructions
