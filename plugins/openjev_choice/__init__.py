"""Choice: one of several named options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from openjev_core import Content, Distribution, Option, QuestionType, Readout, content_text, hookimpl, question_text

WITHOUT_INSTRUCTIONS = "Which option describes the material best?"


@frozen(kw_only=True)
class Choice:
    """A question with one right option.

    Attributes:
        criteria: Option names, each with a description. The model reads the description alone; where it is null,
            the name is the description.
        instructions: What to decide; a general question when absent.
    """

    criteria: dict[str, Content | None]
    instructions: Content | None = None


@frozen(kw_only=True)
class ChoiceAnswer:
    """The answer to a choice.

    Attributes:
        choice: The name of the most probable option, the first on ties.
        probabilities: Option name to probability; they sum to 1.
        confidence: In [0, 1]: 0 when every option is as probable as another, 1 when one has everything.
    """

    choice: str
    probabilities: dict[str, float]
    confidence: float


def readouts(question: Choice) -> Iterable[Readout]:
    """One readout over the options."""
    text = question_text(question.instructions, WITHOUT_INSTRUCTIONS)
    options = (
        Option(key=name, text=content_text(name if description is None else description))
        for name, description in question.criteria.items()
    )
    yield Readout(text=text, options=tuple(options), loc=("criteria",))


def reduce(question: Choice, distributions: Sequence[Distribution]) -> ChoiceAnswer:
    """The distribution by name, and its mode."""
    (distribution,) = distributions
    probabilities = dict(zip(question.criteria, distribution.probabilities, strict=True))
    names: Mapping[int, str] = dict(enumerate(question.criteria))
    return ChoiceAnswer(
        choice=names[distribution.mode], probabilities=probabilities, confidence=distribution.confidence
    )


@hookimpl
def openjev_question_types() -> Sequence[QuestionType[Any, Any]]:
    """Register Choice."""
    return [
        QuestionType(
            name="choice",
            summary="One of several named options, with a probability for each.",
            api=1,
            question=Choice,
            answer=ChoiceAnswer,
            readouts=readouts,
            reduce=reduce,
            examples=(
                Choice(
                    instructions="Which team should handle this ticket?",
                    criteria={
                        "billing": "Payments, invoices, refunds",
                        "technical": "Bugs, outages, integrations",
                        "sales": None,
                    },
                ),
            ),
        )
    ]
