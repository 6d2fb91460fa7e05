from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest
from openjev_followup import EXAMPLE, Followup, followup

from openjev_core import Option, QuestionType, Readout, RequestError, Rounds, load_registry
from openjev_core.testing import check_question_type, rendered_prompts

INSTALLED = load_registry(["openjev-followup"]).types
FOLLOWUP = followup(INSTALLED.values())
COMPLAINT = {"type": "noul", "instructions": "Is it a complaint?"}
ABOUT = {"type": "choice", "instructions": "About what?", "criteria": {"price": None, "quality": None}}
ANGER = {"type": "score", "instructions": "How angry?", "criteria": ["calm", "furious"]}
YES = {"path": ["noul"], "at_least": 0.5}


def answering(prompts: list[str] | None = None, **probabilities: float) -> Any:
    """A script that gives the first option what the question's first word says, else all. It keeps the prompts."""

    def script(prompt: str, labels: list[str]) -> list[float]:
        if prompts is not None:
            prompts.append(prompt)
        word = prompt.rpartition("Question: ")[2].split(" ")[0]
        first = probabilities.get(word, 1.0)
        return [first] + [(1 - first) / (len(labels) - 1)] * (len(labels) - 1)

    return script


def ask(engine: Any, question: Any, followups: Any) -> Any:
    asked = {"type": "followup", "question": question, "followups": followups}
    return asyncio.run(engine.evaluate(state="", questions={"q": asked}))


def test_it_keeps_the_contract() -> None:
    check_question_type(FOLLOWUP)


def test_its_prompts(prompt_snapshot: Any) -> None:
    assert rendered_prompts(FOLLOWUP, EXAMPLE, script=answering()) == prompt_snapshot


BOTH = {"about": {"when": YES, "question": ABOUT}, "anger": {"when": YES, "question": ANGER}}


def test_follow_ups_are_asked_where_the_answer_calls_for_them(openjev_engine: Any) -> None:
    evaluation = ask(openjev_engine(FOLLOWUP, script=answering(Is=0.75, About=0.25)), COMPLAINT, BOTH)
    answer = evaluation.answers["q"]

    assert {"type": "noul", "noul": pytest.approx(0.75)} == answer["answer"]
    assert ["about", "anger"] == list(answer["followups"])
    assert ("choice", "quality") == (answer["followups"]["about"]["type"], answer["followups"]["about"]["choice"])
    assert 0.0 == answer["followups"]["anger"]["score"]
    assert 3 == evaluation.usage.branches


def test_and_not_where_it_does_not(openjev_engine: Any) -> None:
    evaluation = ask(openjev_engine(FOLLOWUP, script=answering(Is=0.25)), COMPLAINT, BOTH)

    assert {"about": None, "anger": None} == evaluation.answers["q"]["followups"]
    assert 1 == evaluation.usage.branches


def test_inside_answers_are_those_of_the_types_by_themselves(openjev_engine: Any) -> None:
    """The same prompts, labels and orders are read."""
    prompts: list[str] = []
    engine = openjev_engine(*INSTALLED.values(), FOLLOWUP, script=answering(prompts, Is=0.75, About=0.25))

    alone = asyncio.run(engine.evaluate(state="", questions={"q": COMPLAINT, "about": ABOUT, "anger": ANGER}))
    read_alone = sorted(prompts)
    prompts.clear()
    inside = ask(engine, COMPLAINT, BOTH).answers["q"]

    assert read_alone == sorted(prompts)
    assert [alone.answers["q"], alone.answers["about"], alone.answers["anger"]] == [
        inside["answer"],
        inside["followups"]["about"],
        inside["followups"]["anger"],
    ]


@pytest.mark.parametrize(
    ("when", "called"),
    [
        ({"path": ["choice"], "one_of": ["price"]}, True),
        ({"path": ["choice"], "one_of": ["quality", None]}, False),
        ({"path": ["probabilities", "price"], "at_least": 0.74, "at_most": 0.76}, True),
        ({"path": ["probabilities", "price"], "at_most": 0.7}, False),
        ({"path": ["confidence"], "at_most": 0.5, "one_of": [1]}, False),
    ],
)
def test_conditions(openjev_engine: Any, when: Any, called: bool) -> None:
    engine = openjev_engine(FOLLOWUP, script=lambda prompt, labels: [0.75, 0.25])

    answer = ask(engine, ABOUT, {"more": {"when": when, "question": ANGER}}).answers["q"]

    assert called == (answer["followups"]["more"] is not None)


def test_a_follow_up_may_have_follow_ups_and_ask_on(openjev_engine: Any) -> None:
    inner = {
        "type": "followup",
        "question": ABOUT,
        "followups": {"anger": {"when": {"path": ["choice"], "one_of": ["price"]}, "question": ANGER}},
    }
    engine = openjev_engine(FOLLOWUP, script=answering())

    evaluation = ask(
        engine, COMPLAINT, {"more": {"when": YES, "question": inner}, "anger": {"when": YES, "question": ANGER}}
    )

    assert "calm" == evaluation.answers["q"]["followups"]["more"]["followups"]["anger"]["legend"]["0"]
    assert 4 == evaluation.usage.branches


def halves(question: Any) -> Rounds:
    """A type that asks single readouts and rounds, mixed."""
    sides = (Option(key="a", text="a"), Option(key="b", text="b"))
    yield Readout(text="One?", options=sides, key=1)
    (found,) = yield [Readout(text="Two?", options=sides, key=2)]
    yield Readout(text=f"Three, after {found.top.key}?", options=sides, key=3)


def test_a_type_inside_that_asks_on_gets_its_own_distributions(openjev_engine: Any) -> None:
    seen = []

    def reduce(question: Any, distributions: Any) -> Any:
        seen.append([(d.readout.key, d.readout.text) for d in distributions])
        return INSTALLED["noul"].answer(noul=distributions[0]["a"])

    kind: QuestionType[Any, Any] = attrs.evolve(INSTALLED["noul"], name="halves", readouts=halves, reduce=reduce)
    engine = openjev_engine(followup([kind, INSTALLED["score"]]), script=lambda prompt, labels: [0.25, 0.75])
    question = {"type": "halves", "instructions": "?"}

    ask(engine, question, {"again": {"when": {"path": ["noul"], "at_least": 0}, "question": question}})

    assert [(1, "One?"), (2, "Two?"), (3, "Three, after b?")] == seen[-1] == seen[-2]


@pytest.mark.parametrize(
    ("question", "followups", "msg"),
    [
        ({"type": "bogus"}, {}, "questions.q.question.type: unknown question type 'bogus'; installed: "),
        ({"type": "noul"}, {}, "questions.q.question.instructions: a noul needs instructions"),
        (
            COMPLAINT,
            {"x": {"when": YES, "question": {"type": "choice", "criteria": {}}}},
            "questions.q.followups.x.question.criteria: ",
        ),
        (
            COMPLAINT,
            {"x": {"when": {"path": ["nouls"], "at_least": 0.5}, "question": ANGER}},
            "questions.q.followups.x.when.path: a noul answer has no 'nouls' there; it has: type, noul",
        ),
        (
            ABOUT,
            {"x": {"when": {"path": ["choice"], "at_least": 0.5}, "question": ANGER}},
            "questions.q.followups.x.when.path: at_least and at_most compare numbers, and this is none; use one_of",
        ),
        (
            COMPLAINT,
            {"x": {"when": {"path": ["noul"]}, "question": ANGER}},
            "questions.q.followups.x.when: says nothing; give at_least, at_most or one_of",
        ),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_read(
    openjev_engine: Any, question: Any, followups: Any, msg: str
) -> None:
    prompts: list[str] = []
    engine = openjev_engine(FOLLOWUP, script=answering(prompts))

    with pytest.raises(RequestError) as refusal:
        ask(engine, question, followups)

    assert str(refusal.value).startswith(msg)
    assert [] == prompts


def test_it_is_built_by_its_question_class_too(openjev_engine: Any) -> None:
    evaluation = asyncio.run(
        openjev_engine(FOLLOWUP).evaluate(state="", questions={"q": Followup(question=COMPLAINT, followups={})})
    )

    assert {"type": "followup", "answer": {"type": "noul", "noul": 0.5}, "followups": {}} == evaluation.answers["q"]
