"""Questions are structured as their classes say: nothing is coerced, nothing unknown is dropped."""

from __future__ import annotations

import enum
from typing import Any, Literal

import attrs
import pytest
from attrs import field, frozen, validators

from openjev_core import Content, QuestionType, RequestError, errors
from openjev_core.errors import MAX_PROBLEMS, PluginError
from openjev_core.plugins.registry import load_registry, registry_of
from openjev_core.plugins.structuring import QuestionConverter


class Level(enum.StrEnum):
    LOW = "low"
    HIGH = "high"


@frozen(kw_only=True)
class Node:
    size: int = 0
    children: list[Node] = field(factory=list)


def explode(value):
    if value == "boom":
        raise RuntimeError("a fault of the class")
    return value


@frozen(kw_only=True)
class Everything:
    text: str = ""
    count: int = 0
    ratio: float = 0.0
    flag: bool = False
    maybe: int | None = None
    content: Content | None = None
    level: Level = Level.LOW
    word: Literal["one", 1] = "one"
    tags: tuple[str, ...] = ()
    bare: list = field(factory=list)
    table: dict[str, float] = field(factory=dict)
    node: Node | None = None
    anything: Any = None
    small: int = field(default=1, validator=validators.in_([1, 2]))
    low: int = field(default=1, validator=validators.lt(10))
    fragile: str = field(default="", converter=explode)


@frozen(kw_only=True)
class Answer:
    value: Any = None


TYPE = QuestionType(
    name="everything",
    summary="For tests.",
    api=1,
    question=Everything,
    answer=Answer,
    readouts=lambda question: [],
    reduce=lambda question, distributions: Answer(),
)
CONVERTER = QuestionConverter(registry_of(TYPE))
NOULS = QuestionConverter(load_registry())

ACCEPTED = [
    ("text", "a", "a"),
    ("text", "", ""),
    ("count", -(10**30), -(10**30)),
    ("ratio", 1, 1.0),
    ("ratio", 0.5, 0.5),
    ("flag", True, True),
    ("maybe", None, None),
    ("maybe", 3, 3),
    ("content", {"a": [1]}, {"a": [1]}),
    ("content", None, None),
    ("level", "high", Level.HIGH),
    ("word", 1, 1),
    ("tags", ["a", "b"], ("a", "b")),
    ("tags", [], ()),
    ("bare", [1, "a", None], [1, "a", None]),
    ("table", {"a": 1, "": 0.5}, {"a": 1.0, "": 0.5}),
    ("node", {"children": [{"size": 1, "children": []}]}, Node(children=[Node(size=1)])),
    ("node", None, None),
    ("anything", {"a": True}, {"a": True}),
    ("small", 2, 2),
]

REFUSED = [
    ("text", 1, (), "expected a string, found an integer"),
    ("text", None, (), "expected a string, found null"),
    ("text", ["a"], (), "expected a string, found an array"),
    ("count", "1", (), "expected an integer, found a string"),
    ("count", 1.0, (), "expected an integer, found a number"),
    ("count", True, (), "expected an integer, found true or false"),
    ("ratio", "0.5", (), "expected a number, found a string"),
    ("ratio", True, (), "expected a number, found true or false"),
    ("ratio", 10**400, (), "an integer too large for a number of double precision"),
    ("flag", "false", (), "expected true or false, found a string"),
    ("flag", 0, (), "expected true or false, found an integer"),
    ("maybe", "3", (), "expected an integer or null, found a string"),
    ("maybe", False, (), "expected an integer or null, found true or false"),
    ("content", 1, (), "expected a string, an object, an array or null, found an integer"),
    ("level", "LOW", (), 'expected one of "low", "high"'),
    ("level", None, (), 'expected one of "low", "high"'),
    ("level", [], (), 'expected one of "low", "high"'),
    ("word", True, (), 'expected one of "one", 1'),
    ("word", "1", (), 'expected one of "one", 1'),
    ("tags", "abc", (), "expected an array, found a string"),
    ("tags", {"a": 1}, (), "expected an array, found an object"),
    ("tags", ["a", 1], (1,), "expected a string, found an integer"),
    ("bare", "abc", (), "expected an array, found a string"),
    ("table", [["a", 1]], (), "expected an object, found an array"),
    ("table", {"a": "1"}, ("a",), "expected a number, found a string"),
    ("table", {"a": 10**400}, ("a",), "an integer too large for a number of double precision"),
    ("node", "x", (), "expected an object or null, found a string"),
    ("node", {"children": [{}, {"size": "1"}]}, ("children", 1, "size"), "expected an integer, found a string"),
    ("node", {"children": [{"siz": 1}]}, ("children", 0, "siz"), "unknown field; accepted: size, children"),
    ("small", 3, (), "'small' must be in [1, 2] (got 3)"),
    ("low", 10, (), "'low' must be < 10: 10"),
]


@pytest.mark.parametrize(("name", "value", "expected"), ACCEPTED)
def test_a_value_that_is_what_the_class_says(name, value, expected):
    found, question = CONVERTER.question({"type": "everything", name: value})
    assert TYPE is found
    assert expected == getattr(question, name)
    assert type(expected) is type(getattr(question, name))


@pytest.mark.parametrize(("name", "value", "loc", "msg"), REFUSED)
def test_a_value_that_is_not_is_refused_with_its_path(name, value, loc, msg):
    with pytest.raises(RequestError) as refused:
        CONVERTER.question({"type": "everything", name: value})
    (problem,) = refused.value.problems
    assert ((name, *loc), msg) == (problem.loc, problem.msg)


def test_every_problem_is_told_at_once():
    with pytest.raises(RequestError) as refused:
        CONVERTER.question({"type": "everything", "text": 1, "tags": [1, "a", 2], "unknown": 1, "other": 2})
    assert {("text",), ("tags", 0), ("tags", 2), ("unknown",), ("other",)} == {p.loc for p in refused.value.problems}


def test_a_complaint_about_a_long_value_stays_short():
    with pytest.raises(RequestError) as refused:
        CONVERTER.question({"type": "everything", "small": int("1" * 3000)})
    assert len(refused.value.problems[0].msg) <= 300


def test_a_fault_of_the_class_is_no_fault_of_the_request():
    with pytest.raises(PluginError) as broken:
        CONVERTER.question({"type": "everything", "fragile": "boom"})
    assert "question type 'everything' failed: its question class raised RuntimeError" == str(broken.value)


ENVELOPES = [
    ({"type": "choice"}, ("criteria",), "missing; this field is required", "missing"),
    ({}, ("type",), "missing; installed question types: choice, noul, score", "missing"),
    ({"type": None}, ("type",), "expected a string, found null", "type_error"),
    ({"type": "bogus"}, ("type",), "unknown question type 'bogus'; installed: choice, noul, score", "unknown_type"),
    ({"type": "Noul"}, ("type",), "unknown question type 'Noul'; installed: choice, noul, score", "unknown_type"),
    ([], (), "expected an object with a type, found an array", "type_error"),
    ("noul", (), "expected an object with a type, found a string", "type_error"),
    (
        {"type": "noul", "criteria": {"true": 1}},
        ("criteria", "true"),
        "expected a string, an object, an array or null, found an integer",
        "type_error",
    ),
    (
        {"type": "noul", "criteria": {"yes": "x"}},
        ("criteria", "yes"),
        "unknown field; accepted: true, false",
        "extra_forbidden",
    ),
    (
        {"type": "noul", "instruction": "x"},
        ("instruction",),
        "unknown field; accepted: instructions, criteria",
        "extra_forbidden",
    ),
    ({"type": "score", "criteria": {"0": "a"}}, ("criteria",), "expected an array, found an object", "type_error"),
    (
        {"type": "score", "criteria": ["a", None]},
        ("criteria", 1),
        "expected a string, an object or an array, found null",
        "type_error",
    ),
    ({"type": "choice", "criteria": ["a", "b"]}, ("criteria",), "expected an object, found an array", "type_error"),
    (
        {"type": "choice", "criteria": {"a": False}},
        ("criteria", "a"),
        "expected a string, an object, an array or null, found true or false",
        "type_error",
    ),
]


@pytest.mark.parametrize(("data", "loc", "msg", "kind"), ENVELOPES)
def test_the_built_in_types_tell_what_is_wrong(data, loc, msg, kind):
    with pytest.raises(RequestError) as refused:
        NOULS.question(data)
    (problem,) = refused.value.problems
    assert (loc, msg, kind) == (problem.loc, problem.msg, problem.type)


def test_long_type_names_are_not_echoed_whole():
    with pytest.raises(RequestError) as refused:
        NOULS.question({"type": "x" * 10_000})
    assert len(str(refused.value)) < 200


def test_a_question_is_written_as_a_client_would_send_it():
    question = Everything(tags=("a",), level=Level.HIGH, node=Node(children=[Node(size=2)]), content=[1])
    wire = CONVERTER.wire_question(TYPE, question)
    assert "type" == next(iter(wire))
    assert (["a"], "high") == (wire["tags"], wire["level"])
    assert str is type(wire["level"])
    assert (TYPE, question) == CONVERTER.question(wire)


@pytest.mark.parametrize("question_type", load_registry().types.values(), ids=lambda t: t.name)
def test_examples_survive_the_way_there_and_back(question_type):
    for example in question_type.examples:
        assert (question_type, example) == NOULS.question(NOULS.wire_question(question_type, example))


@frozen
class SomethingElse:
    value: float = 0.5


CYCLE: list = []
CYCLE.append(CYCLE)

BROKEN_ANSWERS = [
    (SomethingElse(), "reduce returned a SomethingElse, not a Answer"),
    (None, "reduce returned a NoneType, not a Answer"),
    ({"value": 1}, "reduce returned a dict, not a Answer"),
    (Answer(value=float("nan")), "its answer holds a number that is not finite at value"),
    (Answer(value={"a": [0.5, float("inf")]}), "its answer holds a number that is not finite at value.a.1"),
    (Answer(value={1: "a"}), "its answer holds a key that is no string of characters at value"),
    (Answer(value="a\ud800"), "its answer holds a lone surrogate, which is no character, at value"),
    (Answer(value=b"bytes"), "its answer holds a bytes, which is no JSON, at value"),
    (Answer(value=CYCLE), "its answer cannot be written: RecursionError"),
]


@pytest.mark.parametrize(("answer", "rule"), BROKEN_ANSWERS)
def test_an_answer_that_is_no_json_is_the_plugins_fault(answer, rule):
    with pytest.raises(PluginError) as broken:
        CONVERTER.answer(TYPE, answer)
    assert rule == broken.value.rule


def test_an_answer_is_written_with_its_type_first():
    answer = attrs.evolve(Answer(), value={"a": (1, 0.5, None, Level.LOW)})
    assert {"type": "everything", "value": {"a": [1, 0.5, None, "low"]}} == CONVERTER.answer(TYPE, answer)
    assert "type" == next(iter(CONVERTER.answer(TYPE, answer)))


def test_an_answer_shares_nothing_with_a_question_that_is_kept():
    """The level's own object is in the legend: whoever changes that must not change the question."""
    converter = QuestionConverter(load_registry())
    wire = {"type": "score", "criteria": [{"level": "calm"}, "angry"]}
    score, question = converter.question(wire)
    legend = {"0": question.criteria[0], "1": "angry"}
    answer = score.answer(score=0.5, legend=legend, probabilities={"0": 0.5, "1": 0.5}, confidence=0.0)
    converter.answer(score, answer)["legend"]["0"]["level"] = "changed"
    assert [{"level": "calm"}, "angry"] == question.criteria


def problems_in(wire):
    with pytest.raises(RequestError) as refused:
        QuestionConverter(load_registry()).question(wire)
    return refused.value.problems


@pytest.mark.parametrize(
    "wire",
    [
        {"type": "score", "criteria": [1] * 100_000},
        {"type": "choice", "criteria": dict.fromkeys(map(str, range(100_000)), 1)},
        {"type": "noul", "instructions": "?", **dict.fromkeys(map(str, range(100_000)))},
    ],
)
def test_no_more_problems_are_looked_for_than_are_shown(wire, monkeypatch):
    """Each costs an exception, and a hostile request may have a million."""
    made = []
    describe = errors.describe_problem
    monkeypatch.setattr(errors, "describe_problem", lambda problem: [made.append(problem), describe(problem)][1])
    assert MAX_PROBLEMS + 1 == len(problems_in(wire))
    assert [] == made
