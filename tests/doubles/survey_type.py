"""A third party's question type, with a field of each kind that a form can have, and words that are no markup."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen

from openjev_core import Content, Option, QuestionType, Readout, content_text

MARKUP = "<img src=x onerror=globalThis.pwned=1><script>globalThis.pwned=1</script>"


@frozen(kw_only=True)
class Scale:
    """A scale.

    Attributes:
        low: Where it starts.
        step: How far apart its marks are.
    """

    low: int
    step: float = 1.0


@frozen(kw_only=True)
class Survey:
    """A survey <b>about</b> anything.

    Attributes:
        topic: What it is about <script>globalThis.pwned=1</script>.
        items: What is judged, each by ``the model``.
        mode: How strictly.
        weights: How much each item counts.
        scale: The scale, if any.
        strict: Whether to be strict.
        rounds: How often.
        extra: Anything else.
    """

    topic: Content
    items: list[str]
    mode: Literal["plain", "careful"] = "plain"
    weights: dict[str, float] = field(factory=dict)
    scale: Scale | None = None
    strict: bool = False
    rounds: int | None = None
    extra: dict | None = None


@frozen(kw_only=True)
class SurveyAnswer:
    """The answer to a survey."""

    best: str
    shares: dict[str, float]
    ranking: list[str]
    mean: float
    confidence: float
    x_note: str


def readouts(question):
    options = tuple(Option(key=index, text=item) for index, item in enumerate(question.items))
    yield Readout(text=content_text(question.topic), options=options, loc=("items",))


def reduce(question, distributions):
    (read,) = distributions
    shares = dict(zip(question.items, read.probabilities, strict=True))
    ranking = sorted(shares, key=shares.get, reverse=True)
    return SurveyAnswer(
        best=ranking[0], shares=shares, ranking=ranking, mean=0.5, confidence=read.confidence, x_note=MARKUP
    )


SURVEY = QuestionType(
    name="survey",
    summary=f"Judges things. {MARKUP}",
    api=1,
    question=Survey,
    answer=SurveyAnswer,
    readouts=readouts,
    reduce=reduce,
    examples=(Survey(topic="Which is best?", items=["one", "two"]),),
)
