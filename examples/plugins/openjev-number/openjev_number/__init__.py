"""Number: an estimate on a declared range, from a ladder of thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import frozen

from openjev_core import Content, Distribution, InvalidQuestion, Option, QuestionType, Readout, content_text, hookimpl
from openjev_number.ladder import Ladder, falling

YES = Option(key="yes", label="Yes", text="it is at least that")
NO = Option(key="no", label="No", text="it is less than that")
FEWEST, MOST = 2, 64


@frozen(kw_only=True)
class Number:
    """A question whose answer is a number.

    Attributes:
        instructions: What the number is: "How many days has the customer waited?".
        minimum: The least that it can be.
        maximum: The most that it can be.
        bins: Into how many equal parts the range is cut, 2 to 64. Each border costs one readout.
        unit: Written behind the numbers, such as "days".
    """

    instructions: Content
    minimum: float
    maximum: float
    bins: int = 8
    unit: str = ""


@frozen(kw_only=True)
class Bin:
    """One part of the range.

    Attributes:
        low, high: Its borders; the high one belongs to the next bin, or to this one where it is the last.
        probability: That the number lies in it.
    """

    low: float
    high: float
    probability: float


@frozen(kw_only=True)
class NumberAnswer:
    """The answer to a number question. Within a bin, every value counts as equally probable.

    Attributes:
        mean: The expected value.
        median: As probably above as below.
        low, high: An interval that holds the number with 80% probability: its 10% and 90% quantiles.
        distribution: The bins, lowest first; their probabilities sum to 1.
        x_corrections: How far the readouts had to be moved to agree with each other, on average, in [0, 1]: they
            should fall from one threshold to the next, and a model does not always see to that.
    """

    mean: float
    median: float
    low: float
    high: float
    distribution: list[Bin]
    x_corrections: float


def ladder(question: Number) -> Ladder:
    """The range, cut into bins."""
    return Ladder(question.minimum, question.maximum, question.bins)


def readouts(question: Number) -> Iterable[Readout]:
    """One yes/no readout per border between bins: is it at least that?"""
    if not question.minimum < question.maximum:
        raise InvalidQuestion("minimum must be less than maximum", ("minimum",))
    if not FEWEST <= question.bins <= MOST:
        raise InvalidQuestion(f"bins must be from {FEWEST} to {MOST}, found {question.bins}", ("bins",))
    borders = ladder(question).borders
    if len(set(borders)) != len(borders):
        raise InvalidQuestion("the range is too narrow to be cut into that many bins", ("bins",))
    asked = content_text(question.instructions)
    for border in borders[1:-1]:
        amount = f"{border:.12g} {question.unit.strip()}".strip()
        text = f"{asked}\nIs it at least {amount}?".strip()
        yield Readout(key=border, text=text, options=(YES, NO), loc=("instructions",))


def reduce(question: Number, distributions: Sequence[Distribution]) -> NumberAnswer:
    """The readouts as a falling curve, its steps as a distribution."""
    said = [distribution["yes"] for distribution in distributions]
    at_least = falling(said)
    cut = ladder(question)
    probabilities = [above - below for above, below in zip([1.0, *at_least], [*at_least, 0.0], strict=True)]
    return NumberAnswer(
        mean=cut.mean(probabilities),
        median=cut.quantile(probabilities, 0.5),
        low=cut.quantile(probabilities, 0.1),
        high=cut.quantile(probabilities, 0.9),
        distribution=[
            Bin(low=low, high=high, probability=probability)
            for low, high, probability in zip(cut.borders, cut.borders[1:], probabilities, strict=False)
        ],
        x_corrections=sum(abs(a - b) for a, b in zip(said, at_least, strict=True)) / len(said),
    )


NUMBER = QuestionType(
    name="number",
    summary="A number on a declared range: mean, median, an 80% interval and the distribution.",
    api=1,
    question=Number,
    answer=NumberAnswer,
    readouts=readouts,
    reduce=reduce,
    labels=("Yes", "No"),
    examples=(
        Number(instructions="How many days has the customer waited?", minimum=0, maximum=16, bins=4, unit="days"),
    ),
)


@hookimpl
def openjev_question_types() -> Sequence[QuestionType[Any, Any]]:
    """Register Number."""
    return [NUMBER]
