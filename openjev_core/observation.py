"""What observers of evaluations are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen


@frozen(kw_only=True)
class FinishedEvaluation:
    """An evaluation that ended, well or not. Holds no state, no instructions and no key.

    Attributes:
        request_id: As in the response's ``x-typesafe-request-id``; empty for library use.
        model: Public name of the model.
        types: Question id to the name of its type, in request order.
        answers: Question id to answer, as in the response; empty when the evaluation failed.
        error: The error's ``error_type``; ``None`` when all went well.
        input_tokens, output_tokens: The backend's counts; 0 when the evaluation failed.
        seconds: Wall-clock time from admission to the end.
    """

    request_id: str
    model: str
    types: Mapping[str, str]
    answers: Mapping[str, Mapping[str, Any]]
    error: str | None
    input_tokens: int
    output_tokens: int
    seconds: float
