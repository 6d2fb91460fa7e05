"""Noul: the probability that a question is answered yes, or that a statement is true."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

YES = "Yes"
NO = "No"
WITHOUT_INSTRUCTIONS = "Which of the two options describes the material better?"


@frozen(kw_only=True)
class NoulCriteria:
    """What counts as a yes and what as a no.

    Attributes:
        true: Describes the yes.
        false: Describes the no.
    """

    true: Content | None = None
    false: Content | None = None


@frozen(kw_only=True)
class Noul:
    """A yes/no question or a statement.

    Attributes:
        instructions: The question or statement; needed unless ``criteria`` describe an outcome.
        criteria: What counts as a yes and what as a no.
    """

    instructions: Content | None = None
    criteria: NoulCriteria | None = None


@frozen(kw_only=True)
class NoulAnswer:
    """The answer to a noul.

    Attributes:
        noul: P(yes), in [0, 1].
    """

    noul: float


def describes(content: Content | None) -> bool:
    """Whether a criterion says what its outcome is."""
    return content is not None and content_text(content) != ""


def option(label: str, description: Content | None, otherwise: str) -> Option:
    """One of the two outcomes: its description, or a plain reading where there is none."""
    return Option(key=label, label=label, text=otherwise if description is None else content_text(description))


def readouts(question: Noul) -> Iterable[Readout]:
    """One readout over Yes and No."""
    criteria = question.criteria or NoulCriteria()
    if question.instructions is None and not (describes(criteria.true) or describes(criteria.false)):
        msg = "a noul needs instructions, or criteria that describe an outcome; it has neither"
        raise InvalidQuestion(msg, ("instructions",))
    text = question_text(question.instructions, WITHOUT_INSTRUCTIONS)
    yes = option(YES, criteria.true, "the answer is yes" if criteria.false is None else "anything else")
    no = option(NO, criteria.false, "the answer is no" if criteria.true is None else "anything else")
    yield Readout(text=text, options=(yes, no), loc=("criteria",))


def reduce(question: Noul, distributions: Sequence[Distribution]) -> NoulAnswer:  # noqa: ARG001 - the contract's form
    """P(yes)."""
    return NoulAnswer(noul=distributions[0][YES])


@hookimpl
def openjev_question_types() -> Sequence[QuestionType[Any, Any]]:
    """Register Noul."""
    return [
        QuestionType(
            name="noul",
            summary="A yes/no question or statement, answered with P(yes).",
            api=1,
            question=Noul,
            answer=NoulAnswer,
            readouts=readouts,
            reduce=reduce,
            labels=(YES, NO),
            examples=(
                Noul(instructions="Is the customer asking for money back?"),
                Noul(
                    instructions="This message contains unsolicited advertising.",
                    criteria=NoulCriteria(true="An offer nobody asked for", false="A legitimate conversation"),
                ),
            ),
        )
    ]
