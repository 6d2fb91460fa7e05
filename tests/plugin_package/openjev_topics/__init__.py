"""Topics: which of several topics a material is about, one readout for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import frozen

from openjev_core import Content, Distribution, InvalidQuestion, Option, QuestionType, Readout, content_text, hookimpl


@frozen(kw_only=True)
class Topic:
    """A topic.

    Attributes:
        about: What belongs to it.
        threshold: The probability from which it counts.
    """

    about: Content
    threshold: float = 0.5


@frozen(kw_only=True)
class Topics:
    """A question that may have none, one or several right answers.

    Attributes:
        topics: Topic name to topic.
    """

    topics: dict[str, Topic]


@frozen(kw_only=True)
class TopicsAnswer:
    """The answer to a topics question.

    Attributes:
        topics: The names of the topics that count, in the question's order.
        probabilities: Topic name to probability.
        x_confidence: The lowest confidence of any topic.
    """

    topics: tuple[str, ...]
    probabilities: dict[str, float]
    x_confidence: float


def readouts(question: Topics) -> Iterable[Readout]:
    """One readout per topic."""
    if not question.topics:
        raise InvalidQuestion("a topics question needs at least one topic, found none", ("topics",))
    for name, topic in question.topics.items():
        if not 0 <= topic.threshold <= 1:
            raise InvalidQuestion("expected a probability", ("topics", name, "threshold"))
        yield Readout(
            text=f"Is the material about this topic, among others or alone?\n\nTopic: {content_text(topic.about)}",
            options=(
                Option(key=True, label="Yes", text="it is about this topic"),
                Option(key=False, label="No", text="it is not"),
            ),
            key=name,
            loc=("topics", name),
        )


def reduce(question: Topics, distributions: Sequence[Distribution]) -> TopicsAnswer:
    """The probability of each topic, and those that count."""
    probabilities = {str(d.readout.key): d[True] for d in distributions}
    return TopicsAnswer(
        topics=tuple(name for name, p in probabilities.items() if p >= question.topics[name].threshold),
        probabilities=probabilities,
        x_confidence=min(d.confidence for d in distributions),
    )


@hookimpl
def openjev_question_types() -> Sequence[QuestionType[Any, Any]]:
    """Register Topics."""
    return [
        QuestionType(
            name="topics",
            summary="Which of several topics a material is about.",
            api=1,
            question=Topics,
            answer=TopicsAnswer,
            readouts=readouts,
            reduce=reduce,
            labels=("Yes", "No"),
            examples=(Topics(topics={"money": Topic(about="Payments"), "bugs": Topic(about="Defects")}),),
        )
    ]
