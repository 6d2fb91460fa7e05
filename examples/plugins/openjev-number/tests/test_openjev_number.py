from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from openjev_number import NUMBER, Number
from openjev_number.ladder import Ladder, falling

from openjev_core import RequestError
from openjev_core.testing import check_question_type, rendered_prompts

QUESTION = Number(instructions="How many days?", minimum=0, maximum=8, bins=4, unit="days")


def threshold(prompt: str) -> float:
    """The border that a prompt asks about."""
    found = re.search(r"at least ([0-9.]+) days", prompt)
    assert found is not None
    return float(found[1])


def test_it_keeps_the_contract() -> None:
    check_question_type(NUMBER)


def test_its_prompts(prompt_snapshot: Any) -> None:
    assert rendered_prompts(NUMBER, NUMBER.examples[0]) == prompt_snapshot


def test_the_distribution_is_the_curve_s_steps(openjev_engine: Any) -> None:
    at_least = {2.0: 0.75, 4.0: 0.5, 6.0: 0.25}

    def script(prompt: str, labels: list[str]) -> list[float]:
        return [at_least[threshold(prompt)], 1 - at_least[threshold(prompt)]]

    engine = openjev_engine(NUMBER, script=script)

    answer = asyncio.run(engine.evaluate(state="", questions={"q": QUESTION})).answers["q"]

    assert pytest.approx([0.25] * 4) == [part["probability"] for part in answer["distribution"]]
    assert [(0.0, 2.0), (2.0, 4.0), (4.0, 6.0), (6.0, 8.0)] == [(p["low"], p["high"]) for p in answer["distribution"]]
    assert pytest.approx(4.0) == answer["mean"]
    assert pytest.approx(4.0) == answer["median"]
    assert pytest.approx((0.8, 7.2)) == (answer["low"], answer["high"])
    assert pytest.approx(0.0) == answer["x_corrections"]


def test_a_curve_that_rises_is_mended_and_says_so(openjev_engine: Any) -> None:
    at_least = {2.0: 0.4, 4.0: 0.6, 6.0: 0.2}
    engine = openjev_engine(
        NUMBER, script=lambda prompt, labels: [at_least[threshold(prompt)], 1 - at_least[threshold(prompt)]]
    )

    answer = asyncio.run(engine.evaluate(state="", questions={"q": QUESTION})).answers["q"]

    assert pytest.approx([0.5, 0.0, 0.3, 0.2]) == [part["probability"] for part in answer["distribution"]]
    assert pytest.approx(0.2 / 3) == answer["x_corrections"]


def test_falling_keeps_what_falls_already() -> None:
    assert [0.9, 0.5, 0.1] == falling([0.9, 0.5, 0.1])


@pytest.mark.parametrize(
    ("probabilities", "share", "value"),
    [
        ([1.0, 0.0], 0.5, 2.5),
        ([0.0, 1.0], 0.1, 5.5),
        ([0.5, 0.0, 0.0, 0.5], 0.5, 5.0),  # every value from 2.5 to 7.5 is a median
        ([0.25, 0.75], 0.25, 5.0),
    ],
)
def test_quantiles(probabilities: list[float], share: float, value: float) -> None:
    assert pytest.approx(value) == Ladder(0.0, 10.0, len(probabilities)).quantile(probabilities, share)


@pytest.mark.parametrize(
    ("changed", "msg"),
    [
        ({"minimum": 9}, "questions.q.minimum: minimum must be less than maximum"),
        ({"bins": 1}, "questions.q.bins: bins must be from 2 to 64, found 1"),
        (
            {"minimum": 1e300, "maximum": 1.0000000000000002e300},
            "questions.q.bins: the range is too narrow to be cut into that many bins",
        ),
    ],
)
def test_what_it_refuses(openjev_engine: Any, changed: dict[str, Any], msg: str) -> None:
    question = {"type": "number", "instructions": "How many?", "minimum": 0, "maximum": 8, **changed}

    with pytest.raises(RequestError) as refusal:
        asyncio.run(openjev_engine(NUMBER).evaluate(state="", questions={"q": question}))

    assert msg == str(refusal.value)
