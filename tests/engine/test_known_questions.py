"""A question that comes again is structured and prepared once, of the types that allow it alone, within bounds."""

from __future__ import annotations

import orjson
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from preparing import branches_of, planner_for, prepared
from scripted_backend import scripted_engine

from openjev_core import RequestError
from openjev_core.engine import request as requests
from openjev_core.engine.request import Requests
from openjev_core.plugins.registry import load_registry
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.recent import ENTRY_BYTES, Recent, bytes_of

READER = scripted_engine(max_answers=255).reader
CHOICE = {"type": "choice", "criteria": {"one": None, "two": "2"}}
SCORE = {"type": "score", "criteria": ["low", "high"]}
NOUL = {"type": "noul", "instructions": "Is it?"}


def planner_of(lasting=("choice", "score"), reader=READER, kept=1_000_000):
    planner = planner_for(reader)
    return evolve(planner, requests=evolve(planner.requests, lasting=frozenset(lasting), kept=Recent(kept)))


def asked(planner, questions, state="A state.", **more):
    """A request's questions, and what was prepared for it."""
    request = planner.requests.structure({"model": "served", "state": state, "questions": questions, **more})
    return request.questions, planner.prepare(request)


def shown(found):
    """What is read, question by question."""
    return {name: (branches_of(question), question.shared) for name, question in found.questions.items()}


def test_the_same_json_gives_the_same_question_and_branches_whatever_the_state():
    planner = planner_of()
    first, prepared_first = asked(planner, {"a": dict(CHOICE), "b": dict(SCORE)})
    again, prepared_again = asked(planner, {"x": dict(SCORE), "y": dict(CHOICE)}, state=["Another."])
    assert (first["a"], first["b"]) == (again["y"], again["x"])
    assert first["a"] is again["y"]
    assert prepared_first.questions["a"] is prepared_again.questions["y"]


@pytest.mark.parametrize(
    "other",
    [
        {**CHOICE, "criteria": {"two": "2", "one": None}},
        {**CHOICE, "criteria": {"one": None, "two": ["2"]}},
        {**CHOICE, "criteria": {"one": "", "two": "2"}},
        {**CHOICE, "instructions": None},
        SCORE,
    ],
)
def test_other_json_gives_its_own(other):
    planner = planner_of()
    asked(planner, {"q": CHOICE})
    assert shown(asked(planner_of(()), {"q": other})[1]) == shown(asked(planner, {"q": other})[1])


def test_of_other_types_each_has_its_own():
    planner = planner_of(("choice",))
    assert asked(planner, {"q": NOUL})[0]["q"] is not asked(planner, {"q": NOUL})[0]["q"]
    assert 0 == len(planner.requests._kept)


@pytest.mark.parametrize(
    "wrong", [{}, {"a": {**CHOICE, "x": 1}}, {"": CHOICE}, dict.fromkeys("abcd", CHOICE), {"a": {"type": "none"}}]
)
def test_what_is_refused_is_refused_again(wrong):
    structured = Requests(QuestionConverter(load_registry()), ("served",), 3, lasting=frozenset({"choice"}))
    problems = []
    for _ in range(2):
        with pytest.raises(RequestError) as refused:
            structured.structure({"model": "served", "state": "S.", "questions": wrong})
        problems.append(refused.value.problems)
    assert problems[0] == problems[1]


def test_very_long_ones_are_not_kept(monkeypatch):
    monkeypatch.setattr(requests, "KEPT_QUESTION_BYTES", 40)
    planner = planner_of()
    asked(planner, {"a": CHOICE})
    assert 0 == len(planner.requests._kept)


@pytest.mark.parametrize("number", [2**64, 10**100])
def test_an_integer_that_the_key_cannot_hold_is_no_obstacle(number):
    planner = planner_of()
    for _ in range(2):
        questions, _ = asked(planner, {"a": {**CHOICE, "instructions": [number]}})
        assert [number] == questions["a"].value.instructions


QUESTIONS = st.dictionaries(
    st.text(min_size=1, max_size=8),
    st.sampled_from([CHOICE, SCORE, NOUL, {**CHOICE, "instructions": "Which?"}, {**SCORE, "instructions": ["é"]}]),
    min_size=1,
    max_size=4,
)


@given(QUESTIONS, st.sampled_from([1, 2, "full"]), st.sampled_from([["choice"], ["noul", "choice", "score"]]))
def test_a_question_that_comes_again_is_read_as_before(questions, orders, lasting):
    planner = planner_of(lasting)
    fresh = shown(asked(planner_of(()), questions, state="Another state.", x_orders=orders)[1])
    asked(planner, questions)
    asked(planner, {f"renamed {name}": question for name, question in questions.items()})
    for _ in range(2):
        assert fresh == shown(asked(planner, questions, state="Another state.", x_orders=orders)[1])


def counted_planner(count, **changes):
    """A planner whose choice type counts how often its readouts are asked for."""
    planner = planner_of(**changes)
    types = load_registry().types
    counted = evolve(
        types["choice"], readouts=lambda question: [count.append(question), *types["choice"].readouts(question)][1:]
    )
    planner.requests.converter.types["choice"] = counted
    return planner


def test_only_what_lasts_is_planned_once():
    count = []
    for lasting in (("choice",), ()):
        planner = counted_planner(count, lasting=lasting)
        for _ in range(3):
            asked(planner, {"q": CHOICE})
    assert 1 + 3 == len(count)


def test_other_orders_and_another_ending_are_others():
    count = []
    planner = counted_planner(count)
    for orders in (1, 2, 2, 1, "full", "full"):
        asked(planner, {"q": CHOICE}, x_orders=orders)
    assert 4 == len(count)
    kept = asked(planner, {"q": CHOICE}, x_orders=1)[1].questions["q"]
    session = READER.session("S.")
    elsewhere = evolve(kept, ending=evolve(kept.ending, text="Another ending"))
    assert session.prepare(None, [], elsewhere) is not elsewhere
    assert session.prepare(None, [], kept) is kept


@pytest.mark.parametrize("limit", ["max_input_tokens", "max_total_input_tokens"])
def test_a_limit_holds_for_what_was_prepared_before(limit):
    found = prepared(READER, "S.", {"q": planner_of().requests.converter.question(CHOICE)})
    prefix, (suffix,) = len(found.session.prefix.ids), found.questions["q"].suffix_tokens
    just = {"max_input_tokens": prefix + suffix + 1, "max_total_input_tokens": 2 * prefix + suffix}[limit]
    planner, unused = (
        planner_of(reader=evolve(READER, limits=evolve(READER.limits, **{limit: just}))) for _ in range(2)
    )
    for _ in range(2):
        asked(planner, {"q": CHOICE}, state="S.")
    refused = []
    for one in (planner, unused):
        with pytest.raises(RequestError, match="over the limit") as error:
            asked(one, {"q": CHOICE}, state="S. ")
        refused.append(error.value.problems)
    assert refused[0] == refused[1]


@pytest.mark.parametrize(
    "question",
    [
        {**CHOICE, "instructions": f"?{' ' * 10_000}"},
        {**CHOICE, "criteria": {"n" * 5000: "one", "m" * 5000: "two"}},
        {**CHOICE, "criteria": {"a": "\U0001f642" * 1000, "b": None}},
        {"type": "score", "criteria": [{"deep": ["x" * 1000] * 5}, "high"]},
    ],
)
def test_what_is_kept_counts_all_that_it_keeps_alive(question):
    """White space that is stripped and names that the model never sees are alive as well."""
    planner = planner_of()
    structured, found = asked(planner, {"q": question})
    one = structured["q"]
    assert ENTRY_BYTES + bytes_of(one.written, one.value, one.prepared) == planner.requests._kept.held
    assert planner.requests._kept.held > 2 * len(orjson.dumps(question)) + 8 * sum(found.questions["q"].suffix_tokens)


def test_what_is_kept_is_bounded():
    planner = planner_of(kept=100_000)
    for number in range(100):
        asked(planner, {f"{number}" * 500: {**CHOICE, "instructions": f"{number}{' ' * 5000}"}})
        assert planner.requests._kept.held <= 100_000
    assert 0 < len(planner.requests._kept) < 100
