"""Responses that hold JSON, errors among them: small, and valid JSON whatever the request held."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response

from openjev_core.errors import (
    MAX_PROBLEMS,
    BackendUnavailable,
    MethodNotAllowed,
    OpenJevError,
    PluginError,
    Problem,
    RequestError,
    Unauthorized,
)

NO_SNIFFING = {"x-content-type-options": "nosniff"}
RETRY = "send the request again shortly"
MAX_MESSAGE = 600
MAX_PARTS = 16
MAX_PART = 120


class JsonResponse(Response):
    """A response whose body is JSON. Numbers in it are finite already."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(content, status_code, NO_SNIFFING if headers is None else {**NO_SNIFFING, **headers})

    def render(self, content: Any) -> bytes:
        """The content as JSON."""
        try:
            return orjson.dumps(content)
        except TypeError:
            # orjson writes integers of up to 64 bits; a legend echoes a client's own of up to 4,000 digits.
            return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def error_response(error: Exception, request_id: str) -> JsonResponse:
    """The response to a request that ended in ``error``, in the shape of the wire contract.

    What is not openjev's own error shows nothing of itself.
    """
    if isinstance(error, RequestError):
        return JsonResponse({"detail": wire_problems(error)}, RequestError.status)
    if not isinstance(error, OpenJevError) or error.status is None:
        message = f"internal error; the server's log has it under request {request_id}"
        return detail_response(500, "internal_error", message)
    # Addresses and library words of a failed connection are for the log, not for clients.
    message = f"the backend does not answer; {RETRY}" if isinstance(error, BackendUnavailable) else str(error)
    if isinstance(error, PluginError):
        message += f" (request {request_id})"
    headers = {}
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    if isinstance(error, Unauthorized):
        headers["www-authenticate"] = "Bearer"
    if isinstance(error, MethodNotAllowed):
        headers["allow"] = ", ".join(error.allowed)
    return detail_response(error.status, error.error_type, message, headers)


def detail_response(
    status: int, error_type: str, message: str, headers: Mapping[str, str] | None = None
) -> JsonResponse:
    """An error that is no list of problems."""
    return JsonResponse({"detail": {"error_type": error_type, "message": shown(message, MAX_MESSAGE)}}, status, headers)


def wire_problems(error: RequestError) -> list[dict[str, Any]]:
    """A request's problems, each at a path from ``"body"``; the first :data:`~openjev_core.errors.MAX_PROBLEMS`."""
    wire = [wire_problem(problem) for problem in error.problems[:MAX_PROBLEMS]]
    if len(error.problems) > MAX_PROBLEMS:
        wire.append({"loc": ["body"], "msg": "and more problems", "type": "more_problems"})
    return wire


def wire_problem(problem: Problem) -> dict[str, Any]:
    """One problem, its texts bounded."""
    parts: list[str | int] = [shown(p, MAX_PART) if isinstance(p, str) else p for p in problem.loc[:MAX_PARTS]]
    if len(problem.loc) > MAX_PARTS:
        parts.append("…")
    return {"loc": ["body", *parts], "msg": shown(problem.msg, MAX_MESSAGE), "type": problem.type}


def shown(text: str, limit: int) -> str:
    """``text`` cut to ``limit`` characters, lone surrogates spelled out: they are no Unicode and no JSON."""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
