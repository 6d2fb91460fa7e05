"""What an evaluation takes and gives: plain records, shared by the engine, the HTTP API and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from attrs import frozen

from openjev_core.plugins.structuring import Asked


@frozen(kw_only=True)
class Request:
    """A structured request. The JSON document that it came from was valid in every field.

    Attributes:
        model: As sent; already known to name the served model.
        state: A string, object or array, as sent.
        questions: Question id to question, in request order; never empty.
        orders: How many orders to read each readout in; ``None`` for the server's setting.
        partial: Answer the other questions when a question type fails.
        size: Bytes of the document, where it had any: tells small work from large.
    """

    model: str
    state: str | dict[str, Any] | list[Any]
    questions: Mapping[str, Asked]
    orders: int | Literal["full", "adaptive"] | None = None
    partial: bool = False
    size: int | None = None

    @property
    def type_names(self) -> Iterable[str]:
        """The names of the question types that it uses, one per question."""
        return (asked.type.name for asked in self.questions.values())


@frozen(kw_only=True)
class Usage:
    """The backend's own counts, warm-up and every branch, cached tokens included; no bill.

    A warm-up that was left out, because the backend holds the prefix or reads it with its only branch, counts as one
    that reused all of it.
    """

    input_tokens: int
    output_tokens: int


@frozen(kw_only=True)
class Timings:
    """Seconds that the parts of an evaluation took, by the wall clock."""

    prepare: float
    prefill: float
    branches: float


@frozen(kw_only=True)
class Evaluation:
    """A finished evaluation.

    Attributes:
        model: The public name of the model that answered.
        answers: Question id to answer, as JSON values with ``type`` first, in request order.
        usage: Token counts for the response body.
        timings: For ``Server-Timing``, logs and metrics.
        prefix_tokens: Length of the shared prefix.
        cached_tokens: The branches' cache hits; ``None`` unless every branch reported them.
        branches: How many branches were read.
        types: The question types' names, in request order.
        failures: Ids of questions whose type failed, with the rule that it broke; only with ``partial``.
    """

    model: str
    answers: Mapping[str, Mapping[str, Any]]
    usage: Usage
    timings: Timings
    prefix_tokens: int
    cached_tokens: int | None
    branches: int
    types: tuple[str, ...]
    failures: Mapping[str, str]

    def body(self) -> dict[str, Any]:
        """The response body of the wire contract."""
        return {
            "model": self.model,
            "answers": dict(self.answers),
            "usage": {"input_tokens": self.usage.input_tokens, "output_tokens": self.usage.output_tokens},
        }


@frozen(kw_only=True)
class Limits:
    """The limits in force, as ``GET /v1/limits`` tells them: the settings, lowered to what the backend can take."""

    max_questions: int
    max_answers_per_question: int
    max_body_bytes: int
    max_input_tokens: int
    max_total_input_tokens: int
    max_concurrent_requests: int
    max_concurrent_branches: int


@frozen(kw_only=True)
class PromptPreview:
    """One branch's prompt, for people debugging.

    Attributes:
        question_id: Whose it is.
        readout: The readout's position within its question.
        labels: Label text to option text, in the order shown.
        prompt: The whole prompt as text, prefix and suffix.
        tokens: ``(id, text)`` pairs of the suffix.
    """

    question_id: str
    readout: int
    labels: Mapping[str, str]
    prompt: str
    tokens: tuple[tuple[int, str], ...]


@frozen(kw_only=True)
class Preview:
    """Every prompt of a request, without inference.

    Attributes:
        prefix: The shared prefix as text.
        prefix_tokens: Its ``(id, text)`` pairs.
        branches: One per branch, in reading order.
    """

    prefix: str
    prefix_tokens: tuple[tuple[int, str], ...]
    branches: tuple[PromptPreview, ...]
