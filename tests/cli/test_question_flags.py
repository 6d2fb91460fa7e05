"""Questions written as flags."""

from __future__ import annotations

import pytest

from openjev_core.cli.question_flags import choice_of, questions_of, score_of
from openjev_core.errors import RequestError, describe_problem


def problems_of(**flags):
    with pytest.raises(RequestError) as caught:
        questions_of(**{"nouls": (), "choices": (), "scores": (), **flags})
    return [describe_problem(problem) for problem in caught.value.problems]


def test_bytes_that_are_no_utf8_are_refused_in_every_flag():
    refused = problems_of(nouls=["\udcff?"], choices=["Who? = \udcff | b"], scores=["How? = low < \udcff"])
    assert ["the text is not valid UTF-8"] * 3 == [line.rpartition(": ")[2] for line in refused]


def test_each_kind_gets_ids_of_its_own():
    questions = questions_of(nouls=[" Urgent? ", "Polite?"], choices=["Who? = a | b"], scores=["How? = low < high"])
    assert {
        "noul_1": {"type": "noul", "instructions": "Urgent?"},
        "noul_2": {"type": "noul", "instructions": "Polite?"},
        "choice_1": {"type": "choice", "instructions": "Who?", "criteria": {"a": None, "b": None}},
        "score_1": {"type": "score", "instructions": "How?", "criteria": ["low", "high"]},
    } == questions


def test_a_noul_is_the_whole_text_whatever_it_holds():
    assert (
        r"Is a = b | c < d \= e?"
        == questions_of(nouls=[r"Is a = b | c < d \= e?"], choices=(), scores=())["noul_1"]["instructions"]
    )


def test_a_description_follows_the_first_colon_and_space():
    criteria = {"billing": "Payments: refunds too", "at 10:30": None, "https://a.b/c": "a link", "sales": None}
    question = choice_of("Which? = billing: Payments: refunds too | at 10:30 | https://a.b/c: a link | sales")
    assert criteria == question["criteria"]


def test_without_spaces_nothing_separates():
    assert {"x<y": None, "a|b": None} == choice_of("Is n=1? = x<y | a|b")["criteria"]
    assert "Is n=1?" == choice_of("Is n=1? = x<y | a|b")["instructions"]


def test_a_backslash_makes_a_separator_plain():
    question = choice_of(r"Is a \= b? = yes\: it is | x \| y | z \= \\ | c: d \= e")
    assert "Is a = b?" == question["instructions"]
    assert {"yes: it is": None, "x | y": None, "z = \\": None, "c": "d = e"} == question["criteria"]
    assert ["below < 5", "above"] == score_of(r"How much? = below \< 5 < above")["criteria"]


def test_later_equals_signs_are_plain():
    assert {"a = 1": None, "b": None} == choice_of("Which? = a = 1 | b")["criteria"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Which team?", "no ' = '"),
        ("Which team? billing | sales", "no ' = '"),
        ("= a | b", "no question"),
        ("Which? = a", "found one option: 'a'"),
        ("Which? = a|b", "found one option: 'a|b'"),
        ("Which? = a |  | b", "an empty option"),
        ("Which? = a: one | b |", "an empty option"),
        ("Which? = a | : b", "without a name"),
        ("Which? = a:  | b", "an option without"),
        ("Which? = a: one | a: two", "two options have the name 'a'"),
        ("", "no ' = '"),
    ],
)
def test_a_choice_that_is_not_of_the_form_is_refused(text, found):
    with pytest.raises(ValueError, match=r".") as caught:
        choice_of(text)
    assert found in str(caught.value)


@pytest.mark.parametrize(
    ("text", "found"),
    [("How? = calm", "one option: 'calm'"), ("How? = calm<angry", "one option"), ("How? = calm < < angry", "empty")],
)
def test_a_score_that_is_not_of_the_form_is_refused(text, found):
    with pytest.raises(ValueError, match=r".") as caught:
        score_of(text)
    assert found in str(caught.value)


def test_every_wrong_flag_is_named():
    problems = problems_of(nouls=["  "], choices=["a | b"], scores=["x"])
    assert 3 == len(problems)
    assert problems[0].startswith("--noul '  ': expected a question or a statement")
    assert problems[1].startswith("--choice 'a | b': expected 'QUESTION = NAME: DESCRIPTION | NAME | ...'")
    assert problems[2].startswith("--score 'x': expected 'QUESTION = LOWEST < ... < HIGHEST'")
