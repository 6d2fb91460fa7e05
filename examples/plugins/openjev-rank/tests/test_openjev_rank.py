from __future__ import annotations

import asyncio
from typing import Any

import pytest
from openjev_rank import RANK, Rank
from openjev_rank.bradley_terry import strengths

from openjev_core import InvalidQuestion, RequestError
from openjev_core.testing import check_question_type, rendered_prompts

QUESTION = Rank(instructions="Which is larger?", criteria={"mouse": None, "whale": None, "dog": None})
SIZES = {"mouse": 1.0, "dog": 4.0, "whale": 16.0}


def shown(prompt: str) -> list[str]:
    """The two items of a prompt, in the order shown."""
    return [line[3:].split("<")[0] for line in prompt.splitlines() if line.startswith(("A: ", "B: "))]


def by_size(prompt: str, labels: list[str]) -> list[float]:
    """Prefers the larger item, as a Bradley-Terry model with these sizes would."""
    first, second = (SIZES[name] for name in shown(prompt))
    return [first / (first + second), second / (first + second)]


def test_it_keeps_the_contract() -> None:
    check_question_type(RANK)


def test_its_prompts(prompt_snapshot: Any) -> None:
    assert rendered_prompts(RANK, RANK.examples[0]) == prompt_snapshot


def test_strengths_are_recovered(openjev_engine: Any) -> None:
    engine = openjev_engine(RANK, script=by_size)

    answer = asyncio.run(engine.evaluate(state="", questions={"q": QUESTION})).answers["q"]

    assert ["whale", "dog", "mouse"] == answer["order"]
    expected = {"mouse": 1 / 21, "dog": 4 / 21, "whale": 16 / 21}
    assert pytest.approx(expected, abs=0.02) == answer["scores"]  # the prior pulls them together
    assert 1.0 == answer["consistency"]
    assert pytest.approx(0.0, abs=1e-9) == answer["x_position_bias"]


def test_a_preference_for_the_first_place_cancels_out(openjev_engine: Any) -> None:
    engine = openjev_engine(RANK, script=lambda prompt, labels: [0.9, 0.1])

    answer = asyncio.run(engine.evaluate(state="", questions={"q": QUESTION})).answers["q"]

    assert pytest.approx({"mouse": 1 / 3, "dog": 1 / 3, "whale": 1 / 3}) == answer["scores"]
    assert pytest.approx(0.4) == answer["x_position_bias"]
    assert pytest.approx(0.5) == answer["consistency"]


def test_a_circle_is_inconsistent(openjev_engine: Any) -> None:
    beats = {("mouse", "whale"), ("whale", "dog"), ("dog", "mouse")}

    def script(prompt: str, labels: list[str]) -> list[float]:
        return [0.9, 0.1] if tuple(shown(prompt)) in beats else [0.1, 0.9]

    engine = openjev_engine(RANK, script=script)

    answer = asyncio.run(engine.evaluate(state="", questions={"q": QUESTION})).answers["q"]

    assert answer["consistency"] in (pytest.approx(1 / 3), pytest.approx(2 / 3))


def test_certainty_stays_finite() -> None:
    found = strengths(["a", "b"], {("a", "b"): 1.0, ("b", "a"): 0.0})

    assert pytest.approx({"a": 1.01 / 1.02, "b": 0.01 / 1.02}) == found


@pytest.mark.parametrize("count", [1, 13])
def test_what_it_refuses(openjev_engine: Any, count: int) -> None:
    question = {"type": "rank", "criteria": {str(index): None for index in range(count)}}

    with pytest.raises(RequestError) as refusal:
        asyncio.run(openjev_engine(RANK).evaluate(state="", questions={"q": question}))

    assert f"questions.q.criteria: a rank question takes 2 to 12 items, found {count}" == str(refusal.value)


@pytest.mark.parametrize("label", [["whale", "dog", "mouse"], "whale, dog, mouse"])
def test_a_label_is_the_right_order(label: Any) -> None:
    said = {readout.key: RANK.target(QUESTION, label, readout) for readout in RANK.readouts(QUESTION)}

    assert "whale" == said["mouse", "whale"] == said["whale", "mouse"]
    assert "dog" == said["mouse", "dog"]


@pytest.mark.parametrize("label", ["whale, dog", "whale, dog, dog, mouse", ["whale", "dog", "cat"], 3])
def test_what_is_no_order_of_the_items_is_no_label(label: Any) -> None:
    with pytest.raises(InvalidQuestion, match="is no order of these items: mouse, whale, dog"):
        RANK.target(QUESTION, label, next(iter(RANK.readouts(QUESTION))))
