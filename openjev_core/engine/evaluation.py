"""What an evaluation gives: plain records, shared by the engine, the HTTP API and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from openjev_core.reader import Usage


@frozen(kw_only=True)
class Timings:
    """Seconds that the parts of an evaluation took, by the wall clock.

    Attributes:
        queue: Waiting for others: for a place among the evaluations, and then for one at the model.
        prepare: Rendering and tokenizing.
        prefill: Warming the prefix.
        branches: From then until the last branch was read.
    """

    queue: float
    prepare: float
    prefill: float
    branches: float

    @property
    def phases(self) -> tuple[tuple[str, float], ...]:
        """The parts with their names."""
        return (
            ("queue", self.queue),
            ("prepare", self.prepare),
            ("prefill", self.prefill),
            ("branches", self.branches),
        )


@frozen(kw_only=True)
class Evaluation:
    """A finished evaluation.

    Attributes:
        model: The public name of the model that answered.
        answers: Question id to answer, as JSON values with ``type`` first, in request order.
        usage: What was read.
        timings: How long it took.
        failures: Ids of questions whose type failed, with the rule that it broke; only with ``partial``.
    """

    model: str
    answers: Mapping[str, Mapping[str, Any]]
    usage: Usage
    timings: Timings
    failures: Mapping[str, str]

    def body(self) -> dict[str, Any]:
        """The response body of the wire contract."""
        usage = {"input_tokens": self.usage.input_tokens, "output_tokens": self.usage.output_tokens}
        if self.usage.cached_tokens is not None:
            usage["cached_tokens"] = self.usage.cached_tokens
        return {
            "model": self.model,
            "answers": dict(self.answers),
            "usage": usage,
        }
