"""Abstain: a choice that may be refused, because no option fits or because one cannot tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from attrs import frozen

from openjev_core import (
    Content,
    Distribution,
    InvalidQuestion,
    Option,
    QuestionType,
    Readout,
    content_text,
    hookimpl,
    question_text,
)

WITHOUT_INSTRUCTIONS = "Which option describes the material best?"


class Refusal(Enum):
    """The two ways not to choose. Their keys cannot clash with an option's name."""

    NONE_OF_THESE = "none of these: the material is clear, and no other option fits it"
    CANNOT_TELL = "cannot tell: the material does not say enough to decide"


@frozen(kw_only=True)
class Abstain:
    """A question that may have no answer.

    Attributes:
        criteria: Option names, each with a description; null lets the name speak for itself. At least one.
        instructions: What to decide; a general question when absent.
    """

    criteria: dict[str, Content | None]
    instructions: Content | None = None


@frozen(kw_only=True)
class AbstainAnswer:
    """The answer to an abstain question.

    Attributes:
        choice: The most probable option's name; null when a refusal is more probable.
        probabilities: Option name to probability; with the two refusals they sum to 1.
        none_of_these: The probability that the material is clear and no option fits.
        cannot_tell: The probability that the material does not say enough.
        confidence: In [0, 1], over options and refusals.
    """

    choice: str | None
    probabilities: dict[str, float]
    none_of_these: float
    cannot_tell: float
    confidence: float


def readouts(question: Abstain) -> Iterable[Readout]:
    """One readout over the options and the two refusals."""
    if not question.criteria:
        raise InvalidQuestion("an abstain question needs at least one option, found none", ("criteria",))
    asked = question_text(question.instructions, WITHOUT_INSTRUCTIONS)
    options = [
        Option(key=name, text=content_text(name if described is None else described))
        for name, described in question.criteria.items()
    ]
    refusals = [Option(key=refusal, text=refusal.value) for refusal in Refusal]
    yield Readout(text=asked, options=(*options, *refusals), loc=("criteria",))


def reduce(question: Abstain, distributions: Sequence[Distribution]) -> AbstainAnswer:
    """The most probable outcome, refusals included."""
    (distribution,) = distributions
    top = distribution.top.key
    return AbstainAnswer(
        choice=None if isinstance(top, Refusal) else str(top),
        probabilities={name: distribution[name] for name in question.criteria},
        none_of_these=distribution[Refusal.NONE_OF_THESE],
        cannot_tell=distribution[Refusal.CANNOT_TELL],
        confidence=distribution.confidence,
    )


ABSTAIN = QuestionType(
    name="abstain",
    summary="One of several options, or none of them, or cannot tell.",
    api=1,
    question=Abstain,
    answer=AbstainAnswer,
    readouts=readouts,
    reduce=reduce,
    examples=(
        Abstain(
            instructions="Which product is the message about?",
            criteria={"router": "The home router", "app": "The phone app"},
        ),
    ),
)


@hookimpl
def openjev_question_types() -> Sequence[QuestionType[Any, Any]]:
    """Register Abstain."""
    return [ABSTAIN]
