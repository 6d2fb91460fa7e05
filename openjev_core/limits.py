"""The limits on what a request may ask for."""

from __future__ import annotations

from attrs import frozen

from openjev_core.settings import Settings


@frozen(kw_only=True)
class Limits:
    """The limits in force, as ``GET /v1/limits`` shows them.

    Attributes:
        max_questions: Questions in a request.
        max_answers_per_question: Options in a readout.
        max_body_bytes: Bytes of a request, after decompression.
        max_input_tokens: Tokens of a branch, its output token included.
        max_total_input_tokens: Tokens that a request submits; the warm-up and every branch count in full.
        max_concurrent_requests: Evaluations at once.
        max_concurrent_branches: Branches at the backend at once.
    """

    max_questions: int
    max_answers_per_question: int
    max_body_bytes: int
    max_input_tokens: int
    max_total_input_tokens: int
    max_concurrent_requests: int
    max_concurrent_branches: int

    @classmethod
    def of(cls, settings: Settings, max_prompt_tokens: int) -> Limits:
        """The settings' limits, with the longest branch lowered to what the backend takes.

        Args:
            settings: The settings.
            max_prompt_tokens: The longest prompt that leaves the backend room for its output token.
        """
        return cls(
            max_questions=settings.max_questions,
            max_answers_per_question=settings.max_answers,
            max_body_bytes=settings.max_body_bytes,
            max_input_tokens=min(settings.max_input_tokens, max_prompt_tokens + 1),
            max_total_input_tokens=settings.max_total_input_tokens,
            max_concurrent_requests=settings.max_concurrent_requests,
            max_concurrent_branches=settings.max_concurrent_branches,
        )
