"""What a wire is: one request's way in, and its evaluation's way out."""

from __future__ import annotations

from typing import Any, Protocol

from openjev_core.engine.evaluation import Evaluation
from openjev_core.errors import RequestError
from openjev_core.json_document import parse_document


class WireRequest(Protocol):
    """One request of a wire. It remembers what it needs to write the evaluation in the client's own terms."""

    def document(self, body: bytes) -> Any:
        """The request as the engine's document, an object with ``model``, ``state`` and ``questions``.

        It may run in a thread. What the engine checks by itself is left to it.

        Raises:
            RequestError: The body is no request of this wire.
        """
        ...

    def answered(self, evaluation: Evaluation) -> dict[str, Any]:
        """The response's body."""
        ...

    def located(self, error: RequestError) -> RequestError:
        """The engine's error, with paths into the client's own body."""
        ...


class SystemOneRequest:
    """A request of ``POST /v1/systemone``, whose bodies are the engine's documents."""

    def document(self, body: bytes) -> Any:
        """The body, parsed."""
        return parse_document(body)

    def answered(self, evaluation: Evaluation) -> dict[str, Any]:
        """The answers under their questions' ids."""
        return evaluation.body()

    def located(self, error: RequestError) -> RequestError:
        """The error itself."""
        return error
