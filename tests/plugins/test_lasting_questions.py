"""Questions that are structured once: the same object for the same JSON, of the types that allow it alone."""

from __future__ import annotations

import pytest

from openjev_core import RequestError
from openjev_core.plugins import structuring
from openjev_core.plugins.registry import load_registry
from openjev_core.plugins.structuring import QuestionConverter

CHOICE = {"type": "choice", "criteria": {"one": None, "two": "2"}}


@pytest.fixture
def converter():
    return QuestionConverter(load_registry(), {"choice", "score"})


def test_the_same_json_gives_the_same_object(converter):
    assert converter.question(dict(CHOICE))[1] is converter.question(dict(CHOICE))[1]


@pytest.mark.parametrize(
    "other",
    [
        {**CHOICE, "criteria": {"two": "2", "one": None}},
        {**CHOICE, "criteria": {"one": None, "two": ["2"]}},
        {**CHOICE, "criteria": {"one": "", "two": "2"}},
        {**CHOICE, "instructions": None},
    ],
)
def test_other_json_gives_its_own(converter, other):
    fresh = QuestionConverter(load_registry())
    converter.question(CHOICE)
    assert repr(fresh.question(other)) == repr(converter.question(other))


def test_one_type_is_not_taken_for_another(converter):
    levels = {"criteria": ["low", "high"]}
    converter.question({"type": "score", **levels})
    with pytest.raises(RequestError):
        converter.question({"type": "choice", **levels})


def test_a_refused_question_is_refused_again(converter):
    wrong = {**CHOICE, "instruction": "misspelt"}
    messages = []
    for _ in range(2):
        with pytest.raises(RequestError) as refused:
            converter.question(wrong)
        messages.append(str(refused.value))
    assert messages[0] == messages[1]


def test_of_other_types_each_has_its_own(converter):
    noul = {"type": "noul", "instructions": "Is it?"}
    assert converter.question(noul)[1] is not converter.question(noul)[1]


@pytest.mark.parametrize("number", [2**64, -(2**64), 10**100])
def test_an_integer_that_the_key_cannot_hold_is_no_obstacle(converter, number):
    question = {**CHOICE, "instructions": [number]}
    assert [number] == converter.question(question)[1].instructions
    assert converter.question(question)[1] is not converter.question(question)[1]


def test_a_very_long_one_is_not_kept(converter, monkeypatch):
    monkeypatch.setattr(structuring, "KNOWN_QUESTION_BYTES", 40)
    assert converter.question(CHOICE)[1] is not converter.question(CHOICE)[1]
