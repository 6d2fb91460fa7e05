"""Tags: which of several labels apply, each judged by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import field, frozen, validators

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

YES = Option(key="yes", label="Yes", text="the tag applies")
NO = Option(key="no", label="No", text="the tag does not apply")
WITHOUT_INSTRUCTIONS = "Does the tag apply to the material?"


@frozen(kw_only=True)
class Tags:
    """A question to which any number of answers may be right.

    Attributes:
        criteria: Tag names, each with a description of when it applies; null lets the name speak for itself.
        instructions: What to decide about each tag; a general question when absent.
        threshold: The probability from which a tag is listed in the answer, in [0, 1].
    """

    criteria: dict[str, Content | None]
    instructions: Content | None = None
    threshold: float = field(default=0.5, validator=[validators.ge(0), validators.le(1)])


@frozen(kw_only=True)
class TagsAnswer:
    """The answer to a tags question.

    Attributes:
        tags: The names of the tags that apply, most probable first.
        probabilities: Tag name to the probability that it applies; they are independent and need not sum to 1.
    """

    tags: list[str]
    probabilities: dict[str, float]


def readouts(question: Tags) -> Iterable[Readout]:
    """One yes/no readout per tag. The instructions stand first, so that the engine can read them once for all tags."""
    if not question.criteria:
        raise InvalidQuestion("a tags question needs at least one tag, found none", ("criteria",))
    asked = question_text(question.instructions, WITHOUT_INSTRUCTIONS)
    for name, described in question.criteria.items():
        tag = content_text(name if described is None else described)
        yield Readout(key=name, text=f"{asked}\nTag: {tag}".strip(), options=(YES, NO), loc=("criteria", name))


def reduce(question: Tags, distributions: Sequence[Distribution]) -> TagsAnswer:
    """Each tag's P(yes), and those at or over the threshold."""
    probabilities = {str(distribution.readout.key): distribution["yes"] for distribution in distributions}
    listed = [name for name, probability in probabilities.items() if probability >= question.threshold]
    return TagsAnswer(tags=sorted(listed, key=lambda name: -probabilities[name]), probabilities=probabilities)


def target(question: Tags, label: Any, readout: Readout) -> str:
    """A label is the tags that apply: a list, or a text with commas between them."""
    names = [name.strip() for name in label.split(",") if name.strip()] if isinstance(label, str) else label
    if not isinstance(names, list) or not all(isinstance(name, str) and name in question.criteria for name in names):
        raise InvalidQuestion(f"is no list of these tags: {', '.join(question.criteria)}")
    return "yes" if readout.key in names else "no"


TAGS = QuestionType(
    name="tags",
    summary="Which of several tags apply, with a probability for each.",
    api=1,
    question=Tags,
    answer=TagsAnswer,
    readouts=readouts,
    reduce=reduce,
    target=target,
    labels=("Yes", "No"),
    examples=(
        Tags(
            instructions="Does the ticket raise this matter?",
            criteria={"refund": "The customer wants money back", "bug": "Something does not work", "praise": None},
        ),
    ),
)


@hookimpl
def openjev_question_types() -> Sequence[QuestionType[Any, Any]]:
    """Register Tags."""
    return [TAGS]
