from __future__ import annotations

import asyncio
from typing import Any

import pytest
from openjev_tags import TAGS, Tags

from openjev_core import InvalidQuestion, RequestError
from openjev_core.asking import Asking
from openjev_core.engine.plan import plan
from openjev_core.testing import check_question_type, rendered_prompts

QUESTION = Tags(instructions="Does it apply?", criteria={"refund": "Money back", "bug": None}, threshold=0.6)


def test_it_keeps_the_contract() -> None:
    check_question_type(TAGS)


def test_its_prompts(prompt_snapshot: Any) -> None:
    assert rendered_prompts(TAGS, TAGS.examples[0]) == prompt_snapshot


def test_each_tag_is_judged_by_itself(openjev_engine: Any) -> None:
    """The script says yes to the tag that it finds in the prompt."""
    engine = openjev_engine(TAGS, script=lambda prompt, labels: [0.75, 0.25] if "Money back" in prompt else [0.5, 0.5])

    answer = asyncio.run(engine.evaluate(state="", questions={"q": QUESTION})).answers["q"]

    assert ["refund"] == answer["tags"]
    assert pytest.approx({"refund": 0.75, "bug": 0.5}) == answer["probabilities"]


def test_tags_are_listed_most_probable_first(openjev_engine: Any) -> None:
    def script(prompt: str, labels: list[str]) -> list[float]:
        yes = 0.7 if "Money back" in prompt else 0.9
        return [yes, 1 - yes]

    engine = openjev_engine(TAGS, script=script)

    answer = asyncio.run(engine.evaluate(state="", questions={"q": QUESTION})).answers["q"]

    assert ["bug", "refund"] == answer["tags"]


def test_tags_share_the_instructions(openjev_engine: Any) -> None:
    """What differs stands last, so the engine finds a common beginning that is worth reading once."""
    criteria = dict.fromkeys(("red", "green", "blue"))
    engine = openjev_engine(TAGS)

    question = Tags(instructions="A long question. " * 5, criteria=criteria)
    prepared = engine.reader.session("").prepare(TAGS, plan(Asking(TAGS, question), orders=1))

    assert len("A long question. " * 5 + "\n  Tag: ") == prepared.shared


@pytest.mark.parametrize(
    ("question", "msg"),
    [
        ({"criteria": {}}, "questions.q.criteria: a tags question needs at least one tag, found none"),
        ({"criteria": {"a": None}, "threshold": 2}, "questions.q.threshold: 'threshold' must be <= 1: 2.0"),
        ({"criteria": ["a"]}, "questions.q.criteria: expected an object, found an array"),
    ],
)
def test_what_it_refuses(openjev_engine: Any, question: dict[str, Any], msg: str) -> None:
    engine = openjev_engine(TAGS)

    with pytest.raises(RequestError) as refusal:
        asyncio.run(engine.evaluate(state="", questions={"q": {"type": "tags", **question}}))

    assert msg == str(refusal.value)


@pytest.mark.parametrize("label", [["b", "a"], "a, b"])
def test_a_label_lists_the_tags_that_apply(label: Any) -> None:
    question = Tags(criteria={"a": None, "b": None, "c": None})

    assert ["yes", "yes", "no"] == [TAGS.target(question, label, readout) for readout in TAGS.readouts(question)]
    with pytest.raises(InvalidQuestion, match="is no list of these tags: a, b, c"):
        TAGS.target(question, "a, x", next(iter(TAGS.readouts(question))))
