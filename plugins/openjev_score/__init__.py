"""Score: a place on an ordered rubric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from attrs import frozen

from openjev_core import Content, Distribution, Option, QuestionType, Readout, content_text, hookimpl, question_text

WITHOUT_INSTRUCTIONS = "Which level describes the material best?"


@frozen(kw_only=True)
class Score:
    """A question whose options are levels, lowest first.

    Attributes:
        criteria: The levels' descriptions, in order.
        instructions: What to grade; a general question when absent.
    """

    criteria: list[Content]
    instructions: Content | None = None


@frozen(kw_only=True)
class ScoreAnswer:
    """The answer to a score.

    Attributes:
        score: The expected level, Σ i·p, in [0, n-1].
        legend: Level number to its description, as sent.
        probabilities: Level number to probability; they sum to 1.
        confidence: In [0, 1], by the ordinal form of the server's formula.
    """

    score: float
    legend: dict[str, Content]
    probabilities: dict[str, float]
    confidence: float


def readouts(question: Score) -> Iterable[Readout]:
    """One readout over the levels, whose order carries meaning."""
    text = question_text(question.instructions, WITHOUT_INSTRUCTIONS)
    options = (Option(key=level, text=content_text(described)) for level, described in enumerate(question.criteria))
    yield Readout(text=text, options=tuple(options), loc=("criteria",), ordered=True)


def reduce(question: Score, distributions: Sequence[Distribution]) -> ScoreAnswer:
    """The expectation over the levels."""
    (distribution,) = distributions
    return ScoreAnswer(
        score=math.fsum(level * p for level, p in enumerate(distribution.probabilities)),
        legend={str(level): described for level, described in enumerate(question.criteria)},
        probabilities={str(level): p for level, p in enumerate(distribution.probabilities)},
        confidence=distribution.confidence,
    )


@hookimpl
def openjev_question_types() -> Sequence[QuestionType[Any, Any]]:
    """Register Score."""
    return [
        QuestionType(
            name="score",
            summary="A level of an ordered rubric, as an expectation.",
            api=1,
            question=Score,
            answer=ScoreAnswer,
            readouts=readouts,
            reduce=reduce,
            examples=(
                Score(instructions="How frustrated is the customer?", criteria=["Calm", "Frustrated", "Very angry"]),
            ),
        )
    ]
