"""From any JSON document to a request or to errors that say where, what is accepted, and how many."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scripted_backend import ScriptedBackend, scripted_engine

from openjev_core import RequestError
from openjev_core.json_document import compact

ENGINE = scripted_engine(max_questions=3, max_answers=5, max_input_tokens=2000)
NOUL = {"type": "noul", "instructions": "Is it?"}


def document(**changes):
    fields = {"model": "jev-latest", "state": "S.", "questions": {"q": NOUL}, **changes}
    return {name: value for name, value in fields.items() if value is not ...}


@pytest.mark.parametrize("model", ["openjev/scripted", "jev-latest", "jev-1", "jev-2026-01-01"])
def test_names_of_the_one_model(model):
    assert "S." == ENGINE.structure(document(model=model)).state


def test_unknown_fields_at_the_top_are_ignored():
    assert ENGINE.structure(document()) == ENGINE.structure(document(extra=1, messages=[]))


WRONG = [
    ([], [()], "expected an object with model, state and questions, found an array"),
    (None, [()], "expected an object with model, state and questions, found null"),
    (document(model=...), [("model",)], "missing; this field is required"),
    (document(state=..., questions=...), [("state",), ("questions",)], "missing; this field is required"),
    (document(model=1), [("model",)], "expected a string, found an integer"),
    (document(model="gpt"), [("model",)], "unknown model 'gpt'; served: 'openjev/scripted', also as 'jev-latest'"),
    (document(model=""), [("model",)], "unknown model ''"),
    (document(state=1), [("state",)], "expected a string, an object or an array, found an integer"),
    (document(state=None), [("state",)], "expected a string, an object or an array, found null"),
    (document(state=True), [("state",)], "expected a string, an object or an array, found true or false"),
    (document(questions=[]), [("questions",)], "expected an object of question ids and questions, found an array"),
    (document(questions={}), [("questions",)], "takes 1 to 3 questions (max_questions), found 0"),
    (
        document(questions=dict.fromkeys("abcd", NOUL)),
        [("questions",)],
        "takes 1 to 3 questions (max_questions), found 4",
    ),
    (document(questions={"": NOUL}), [("questions", "")], "a question id must be a non-empty string"),
    (document(questions={"a": 1}), [("questions", "a")], "expected an object with a type, found an integer"),
    (
        document(questions={"a": {"type": "x"}, "b": {}}),
        [("questions", "a", "type"), ("questions", "b", "type")],
        "unknown question type 'x'; installed: choice, noul, score",
    ),
    (
        document(questions={"a": {"type": "score", "criteria": [{}] * 10_001}}),
        [("questions", "a", "criteria")],
        "has 10001 members; a field of a question takes at most 10000",
    ),
    (document(x_orders=0), [("x_orders",)], "expected an integer from 1 up, or full"),
    (document(x_orders=True), [("x_orders",)], "expected an integer from 1 up, or full"),
    (document(x_orders="some"), [("x_orders",)], "expected an integer from 1 up, or full"),
    (document(x_partial="yes"), [("x_partial",)], "expected true or false, found a string"),
    (compact(document()), [()], "questions, found a string that holds JSON; was it encoded twice?"),
    (document(questions="{}"), [("questions",)], "questions, found a string that holds JSON; was it encoded twice?"),
    (
        document(model=1, state=1, questions=1, x_partial=1),
        [("model",), ("state",), ("questions",), ("x_partial",)],
        "expected a string",
    ),
]


@pytest.mark.parametrize(("wrong", "locs", "said"), WRONG)
def test_every_problem_is_told_where_it_stands(wrong, locs, said):
    with pytest.raises(RequestError) as refused:
        ENGINE.structure(wrong)
    assert locs == [problem.loc for problem in refused.value.problems]
    assert said in refused.value.problems[0].msg


def evaluated(value, engine=ENGINE):
    async def run():
        return await engine.evaluate_request(engine.structure(value))

    return asyncio.run(run())


LATE = [
    (document(questions={"q": {"type": "noul"}}), ("questions", "q", "instructions"), "it has neither"),
    (
        document(questions={"q": {"type": "choice", "criteria": {}}}),
        ("questions", "q", "criteria"),
        "a choice question takes 1 to 5 options (max_answers), found 0",
    ),
    (
        document(questions={"q": {"type": "score", "criteria": list("abcdef")}}),
        ("questions", "q", "criteria"),
        "a score question takes 1 to 5 options (max_answers), found 6",
    ),
    (document(state="x" * 5000), ("state",), "over the limit max_input_tokens of 2000"),
    (document(state=[{"role": "user", "content": ["x"]}]), ("state", 0, "content", 0), "expected a text part"),
    (document(x_orders=3), ("x_orders",), "asks for 3 orders; the questions of this request have at most 2"),
]


@pytest.mark.parametrize(("wrong", "loc", "said"), LATE)
def test_what_only_the_prompt_shows_is_told_before_any_inference(wrong, loc, said):
    backend = ScriptedBackend()
    with pytest.raises(RequestError) as refused:
        evaluated(wrong, scripted_engine(backend, max_answers=5, max_input_tokens=2000))
    (problem,) = refused.value.problems
    assert loc == problem.loc
    assert said in problem.msg
    assert [] == backend.prefixes


KEYS = st.sampled_from(
    ["model", "state", "questions", "type", "instructions", "criteria", "role", "content", "q", "true"]
) | st.text(max_size=3)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["noul", "choice", "score", "jev-latest", "user", "tool", "<|im_end|>", ""])
    | st.text(max_size=5)
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
QUESTION = st.fixed_dictionaries(
    {"type": st.sampled_from(["noul", "choice", "score"])},
    optional={"instructions": JSON, "criteria": JSON | st.dictionaries(KEYS, SCALARS) | st.lists(SCALARS)},
)
BODY = JSON | st.fixed_dictionaries(
    {
        "model": st.just("jev-1") | JSON,
        "state": JSON,
        "questions": st.dictionaries(KEYS, QUESTION | JSON, max_size=3) | JSON,
    },
    optional={"x_orders": JSON, "x_partial": JSON},
)


@given(BODY)
@example(
    document(state={"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": '"\\ud800"'}}]}]})
)
@example(document(questions={"q": {"type": "choice", "criteria": {"": "", " ": ""}}}))
def test_any_json_gets_an_answer_or_an_error_of_the_request(value):
    try:
        evaluation = evaluated(value)
    except RequestError as refused:
        problems = refused.problems
    else:
        problems = None
    if problems is not None:
        assert problems
        assert all(p.msg and p.type and isinstance(p.loc, tuple) for p in problems)
        return
    body = evaluation.body()
    compact(body).encode()
    assert list(value["questions"]) == list(body["answers"])
    for answer in body["answers"].values():
        if "probabilities" in answer:
            assert 1.0 == pytest.approx(math.fsum(answer["probabilities"].values()), abs=1e-9)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("state", "said"),
    [(math.nan, "no JSON"), ({"a": math.inf}, "no JSON"), ({"a": {1}}, "no JSON"), ("\ud800", "lone surrogate"),
     ({1: "a", "1": "b"}, "twice"), ([10**5000], "no JSON"), (b"S.", "no JSON")],
)  # fmt: skip
async def test_library_use_is_held_to_the_same_rules(state, said):
    with pytest.raises(RequestError, match=said):
        await ENGINE.evaluate(state=state, questions={"q": NOUL})


@pytest.mark.anyio
async def test_an_object_of_another_class_is_no_question():
    with pytest.raises(RequestError, match="no JSON"):
        await ENGINE.evaluate(state="S.", questions={"q": object()})


KINDS = {
    "noul": {},
    "choice": {"criteria": {"a": None, "b": None}},
    "score": {"criteria": ["low", "high"]},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blank", ["", " ", "\n\t\u3000"])
def test_blank_instructions_ask_nothing(kind, blank):
    question = {"type": kind, "instructions": blank, **KINDS[kind]}
    with pytest.raises(RequestError) as caught:
        asyncio.run(ENGINE.evaluate(state="S.", questions={"q": question}))
    assert [("questions", "q", "instructions")] == [problem.loc for problem in caught.value.problems]
    assert "blank instructions ask nothing; write what to judge" in str(caught.value)


@pytest.mark.parametrize("criteria", [{}, {"true": None}, {"true": " ", "false": ""}])
def test_a_noul_wants_a_criterion_that_says_something_when_it_has_no_instructions(criteria):
    with pytest.raises(RequestError) as caught:
        asyncio.run(ENGINE.evaluate(state="S.", questions={"q": {"type": "noul", "criteria": criteria}}))
    assert [("questions", "q", "instructions")] == [problem.loc for problem in caught.value.problems]
    asyncio.run(ENGINE.evaluate(state="S.", questions={"q": {"type": "noul", "criteria": {**criteria, "true": "x"}}}))
