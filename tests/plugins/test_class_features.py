"""What a class says with attrs and msgspec is enforced, with every failure told, and documented."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal

import attrs
import jsonschema_rs
import pytest
from attrs import Factory, field, frozen, validators
from msgspec import Meta

from openjev_core import QuestionType, RequestError
from openjev_core.errors import PluginError
from openjev_core.plugins.registry import registry_of
from openjev_core.plugins.schemas import components
from openjev_core.plugins.structuring import QuestionConverter


@frozen(kw_only=True)
class Circle:
    radius: float


@frozen(kw_only=True)
class Square:
    side: float
    filled: bool = False


@frozen(kw_only=True)
class Keep:
    kind: Literal["keep"]
    note: str = ""


@frozen(kw_only=True)
class Drop:
    kind: Literal["drop"]
    note: str
    reason: str


@frozen(kw_only=True)
class Nest:
    inner: Nest | Circle | None = None


def is_even(instance, attribute, value):
    if value % 2:
        raise ValueError(f"{attribute.name} is odd")


@frozen(kw_only=True)
class Everything:
    """Every feature.

    Attributes:
        class_: Is a keyword in Python.
    """

    stars: Annotated[int, Meta(ge=1, le=5)] = 3
    code: Annotated[str, Meta(min_length=2, pattern="^[a-z]+$")] = "ab"
    names: Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1)] = Factory(lambda: ["x"])
    maybe: Annotated[float, Meta(gt=0)] | None = None
    low: int = field(default=2, validator=[validators.ge(1), validators.lt(10)])
    tags: list[str] = field(factory=list, validator=validators.max_len(2))
    table: dict[str, int] = field(
        factory=dict, validator=validators.deep_mapping(validators.min_len(1), validators.ge(0))
    )
    word: str = field(default="a", validator=[validators.matches_re("[a-c]+"), validators.min_len(1)])
    size: str | None = field(default=None, validator=validators.optional(validators.in_(["s", "m"])))
    items: list[int] = field(factory=list, validator=validators.deep_iterable(validators.le(9), validators.max_len(3)))
    even: int = field(default=0, validator=is_even)
    shape: Circle | Square = Circle(radius=1.0)
    action: Keep | Drop | str = "none"
    nest: Nest | None = None
    day: dt.date = dt.date(2026, 1, 31)
    moment: dt.datetime | None = None
    texts: str | list[str] = "x"
    mode: Literal["auto"] | int = "auto"
    class_: str = field(default="", metadata={"wire": "class"})
    worked_out: int = field(init=False, default=7)


@frozen(kw_only=True)
class Answer:
    value: Any = None


def type_of(question=Everything, answer=Answer):
    return QuestionType(
        name="everything",
        summary="For tests.",
        api=1,
        question=question,
        answer=answer,
        readouts=lambda question: [],
        reduce=lambda question, distributions: Answer(),
    )


TYPE = type_of()
CONVERTER = QuestionConverter(registry_of(TYPE))
SCHEMAS = components({"everything": TYPE})
SCHEMA = jsonschema_rs.Draft202012Validator(
    {"$ref": "#/components/schemas/everything.question", "components": {"schemas": SCHEMAS}}
)

VALUES = [
    ("stars", 1, None), ("stars", 5, None), ("stars", 0, "expected `int` >= 1"), ("stars", 6, "expected `int` <= 5"),
    ("code", "abc", None), ("code", "a", "expected `str` of length >= 2"), ("code", "a7", "expected `str` matching"),
    ("names", ["a"], None), ("names", [], "expected `array` of length >= 1"),
    ("maybe", None, None), ("maybe", 1, None), ("maybe", 0, "expected `float` > 0"),
    ("low", 9, None), ("low", 0, "'low' must be >= 1: 0"), ("low", 10, "'low' must be < 10: 10"),
    ("tags", ["a", "b"], None), ("tags", ["a"] * 3, "Length of 'tags' must be <= 2: 3"),
    ("table", {"a": 0}, None), ("table", {"": 0}, "Length of 'table' must be >= 1: 0"),
    ("table", {"a": -1}, "'table' must be >= 0: -1"),
    ("word", "abc", None), ("word", "abd", "'word' must match regex '[a-c]+'"),
    ("size", None, None), ("size", "m", None), ("size", "xl", "'size' must be in ['s', 'm']"),
    ("items", [9], None), ("items", [10], "'items' must be <= 9: 10"),
    ("items", [1] * 4, "Length of 'items' must be <= 3: 4"),
    ("shape", {"radius": 1}, None), ("shape", {"side": 1.5, "filled": True}, None),
    ("action", {"kind": "keep"}, None), ("action", "none", None),
    ("action", 7, "expected a string or an object, found an integer"),
    ("day", "2026-02-28", None), ("moment", "2026-02-28T10:00:00Z", None),
    ("day", 7, "expected a string, found an integer"),
    ("texts", ["a", "b"], None), ("texts", "a", None), ("texts", 1, "expected a string or an array, found an integer"),
    ("mode", 3, None), ("mode", "auto", None), ("mode", "fast", 'expected one of "auto"'),
    ("class", "x", None),
    ("worked_out", 7, "even, shape, action, nest, day, moment, texts, mode, class"),
    ("class_", "x", "unknown field"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "complaint"), VALUES)
def test_what_is_enforced_is_what_is_documented(name, value, complaint):
    wire = {"type": "everything", name: value}
    assert (complaint is None) == SCHEMA.is_valid(wire)
    if complaint is None:
        found, question = CONVERTER.question(wire)
        assert (TYPE, question) == CONVERTER.question(CONVERTER.wire_question(found, question))
        return
    with pytest.raises(RequestError) as refused:
        CONVERTER.question(wire)
    (problem,) = refused.value.problems
    assert (name,) == problem.loc
    assert complaint in problem.msg


UNDOCUMENTED = [
    ("even", 3, ("even",), "even is odd"),
    ("day", "2026-02-30", ("day",), "expected a date as RFC 3339 writes it"),
    ("moment", "yesterday", ("moment",), "expected a datetime as RFC 3339 writes it"),
    ("names", ["a", ""], ("names", 1), "expected `str` of length >= 1"),
    ("shape", {"side": "1"}, ("shape", "side"), "expected a number, found a string"),
    ("shape", {"filled": True}, ("shape", "side"), "missing; this field is required"),
    ("action", {"kind": "drop"}, ("action", "reason"), "missing; this field is required"),
    ("action", {"kind": "hold"}, ("action", "kind"), 'expected one of "keep"'),
    ("texts", ["a", 1], ("texts", 1), "expected a string, found an integer"),
]


@pytest.mark.parametrize(("name", "value", "loc", "msg"), UNDOCUMENTED)
def test_failures_have_their_paths(name, value, loc, msg):
    with pytest.raises(RequestError) as refused:
        CONVERTER.question({"type": "everything", name: value})
    assert (loc, msg) in [(problem.loc, problem.msg) for problem in refused.value.problems]


def test_every_failure_is_told_at_once():
    wire = {"stars": 9, "low": 0, "word": "z", "even": 1, "names": [""], "shape": {"side": None}, "extra": 1}
    with pytest.raises(RequestError) as refused:
        CONVERTER.question({"type": "everything", **wire})
    assert {("stars",), ("low",), ("word",), ("even",), ("names", 0), ("shape", "side"), ("extra",)} == {
        problem.loc for problem in refused.value.problems
    }


def test_a_default_is_what_the_document_says():
    properties = SCHEMAS["everything.question"]["properties"]
    assert ("2026-01-31", {"radius": 1.0}, []) == tuple(properties[n]["default"] for n in ("day", "shape", "items"))
    assert "worked_out" not in properties
    assert {"description": "Is a keyword in Python.", "type": "string", "default": ""} == properties["class"]
    assert [{"$ref": f"#/components/schemas/everything.{name}"} for name in ("Circle", "Square")] == properties[
        "shape"
    ]["anyOf"]


def test_a_union_is_decided_without_trying_each_member():
    """Trying would take a time that doubles with every level."""
    value = {"radius": "x"}
    for _ in range(60):
        value = {"inner": value}
    with pytest.raises(RequestError) as refused:
        CONVERTER.question({"type": "everything", "nest": value})
    (problem,) = refused.value.problems
    assert ("nest", *["inner"] * 60, "radius") == problem.loc


@frozen(kw_only=True)
class Range:
    low: int
    high: int = field(converter=attrs.Converter(lambda value, self: value + self.low, takes_self=True))

    @high.validator
    def _check(self, attribute, value):
        if value <= self.low:
            raise ValueError(f"high must be above low, {self.low}")


@frozen(kw_only=True)
class Outer:
    ranges: list[Range]
    total: int = 0

    def __attrs_post_init__(self):
        if self.total < 0:
            raise ValueError("the total is below 0")


def refusals_of(cls, wire):
    with pytest.raises(RequestError) as refused:
        QuestionConverter(registry_of(type_of(question=cls))).question({"type": "everything", **wire})
    return [(problem.loc, problem.msg) for problem in refused.value.problems]


def test_a_validator_sees_the_other_fields():
    good, wrong = {"low": 1, "high": 2}, {"low": 1, "high": -1}
    assert [(("ranges", 1, "high"), "high must be above low, 1")] == refusals_of(Outer, {"ranges": [good, wrong]})
    assert [(("ranges", 0, "low"), "missing; this field is required")] == refusals_of(Outer, {"ranges": [{"high": 1}]})


def test_what_a_class_refuses_as_a_whole_has_the_path_of_the_class():
    assert [((), "the total is below 0")] == refusals_of(Outer, {"ranges": [], "total": -1})


@frozen(kw_only=True)
class Part:
    share: float = 0.5


@frozen(kw_only=True)
class MorePart(Part):
    extra: int = 1


@frozen(kw_only=True)
class Result:
    p: float = 0.5
    parts: list[Part] = field(factory=list)
    words: Literal["a", "b"] = "a"
    stars: Annotated[int, Meta(le=5)] = 5
    day: dt.date | None = None
    class_: str = field(default="", metadata={"wire": "class"})
    double: float = field(init=False, default=1.0)


@frozen(kw_only=True)
class MoreResult(Result):
    extra: int = 1


WRONG_ANSWERS = [
    (Result(p="high"), "p: expected a number, found a string"),
    (Result(p=None), "p: expected a number, found null"),
    (Result(p=True), "p: expected a number, found true or false"),
    (Result(words="c"), 'words: expected one of "a", "b"'),
    (Result(stars=6), "stars: expected `int` <= 5"),
    (Result(parts=Part()), "parts: expected an array, found an object"),
    (Result(parts=[Part(), Part(share="x")]), "parts.1.share: expected a number, found a string"),
    (Result(parts=[MorePart()]), "parts.0.extra: unknown field; accepted: share"),
    (Result(day="tomorrow"), "day: expected a date as RFC 3339 writes it"),
    (MoreResult(), "extra: unknown field; accepted: p, parts, words, stars, day, class, double"),
]


@pytest.mark.parametrize(("answer", "fault"), WRONG_ANSWERS, ids=[fault for _, fault in WRONG_ANSWERS])
def test_an_answer_is_what_its_class_says(answer, fault):
    question_type = type_of(answer=Result)
    with pytest.raises(PluginError) as broken:
        QuestionConverter(registry_of(question_type)).answer(question_type, answer)
    assert f"its answer is not what Result says: {fault}" == broken.value.rule


def test_an_answer_has_every_field_of_its_class():
    question_type = type_of(answer=Result)
    answer = Result(parts=[Part()], day=dt.date(2026, 1, 2), class_="x", p=1)
    written = {"p": 1, "parts": [{"share": 0.5}], "words": "a", "stars": 5, "day": "2026-01-02", "class": "x"}
    found = QuestionConverter(registry_of(question_type)).answer(question_type, answer)
    assert {"type": "everything", **written, "double": 1.0} == found
    schema = components({"everything": question_type})["everything.answer"]
    assert [*written, "double"] == [name for name in schema["properties"] if name != "type"]


FAULTS = [
    (Part | Answer | None, "two members of which are an object in JSON"),
    (list[int] | list[str], "two members of which are an array in JSON"),
    (dt.date | str, "two members of which are a string in JSON"),
    (dict[str, int] | Circle, "two members of which are an object in JSON"),
    (Literal["a"] | dt.date | None, "two members of which are a string in JSON"),
    (Annotated[int, Meta(min_length=1)], "its classes have no JSON schema: Can only set `min_length` on"),
    (list[set[str]] | None, "of type set[str], which has no strict form in JSON"),
]


@pytest.mark.parametrize(("annotation", "fault"), FAULTS)
def test_what_has_no_strict_form_is_refused_when_it_is_loaded(annotation, fault):
    cls = attrs.make_class("Odd", {"odd": field(type=annotation)}, kw_only=True, frozen=True)
    cls.__annotations__ = {"odd": annotation}
    with pytest.raises(ValueError, match=r"question type 'everything'") as refused:
        registry_of(type_of(question=cls))
    assert fault in str(refused.value)


@pytest.mark.parametrize("name", ["radius", 7, None])
def test_a_name_in_json_is_one_fields_own(name):
    fields = {"radius": field(type=float), "other": field(type=float, metadata={"wire": name})}
    cls = attrs.make_class("Odd", fields, kw_only=True)
    with pytest.raises(ValueError, match=r"has a field `Odd.other` with the name .* in JSON"):
        registry_of(type_of(question=cls))
