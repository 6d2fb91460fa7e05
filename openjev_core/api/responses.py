"""Responses that hold JSON, errors among them: small, and valid JSON whatever the request held."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
from starlette.responses import Response

from openjev_core.errors import (
    MAX_PROBLEMS,
    AtCapacity,
    BackendUnavailable,
    Loc,
    MethodNotAllowed,
    OpenJevError,
    PluginError,
    Problem,
    RequestError,
    Unauthorized,
)

NO_SNIFFING = {"x-content-type-options": "nosniff"}
NO_ANSWER = "the backend does not answer; send the request again shortly"
"""For clients: addresses and library words of a failed connection are for the log."""

MAX_MESSAGE = 600
MAX_PARTS = 16
MAX_PART = 120

DECISIONS = "/v1/decisions"
"""The path whose errors have OpenAI's shape and status codes."""

INVALID = "invalid_request_error"

OPENAI_CODES = {"unknown_model": "model_not_found", "authentication_error": "invalid_api_key"}
"""Kinds of errors for which OpenAI has a code of its own."""

OPENAI_STATUS = {"unknown_model": 404, "at_capacity": 429}
"""Statuses on :data:`DECISIONS` where OpenAI's are not those of the other paths. A wrong request is a 400."""


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


def error_response(error: Exception, request_id: str, path: str) -> JsonResponse:
    """The response to a request that ended in ``error``, in the shape of the wire contract.

    What is not openjev's own error shows nothing of itself.

    Args:
        error: What happened.
        request_id: The request's id.
        path: Its path: errors of :data:`DECISIONS` have OpenAI's shape alone.
    """
    openai = path == DECISIONS
    if isinstance(error, RequestError):
        first = error.problems[0]
        body = openai_error(first.type, str(RequestError(error.problems[:MAX_PROBLEMS])), INVALID, param_of(first.loc))
        if openai:
            return JsonResponse(body, OPENAI_STATUS.get(first.type, 400))
        return JsonResponse({"detail": wire_problems(error), **body}, RequestError.status)
    if not isinstance(error, OpenJevError) or error.status is None:
        message = f"internal error; the server's log has it under request {request_id}"
        return detail_response(500, "internal_error", message, openai=openai)
    message = NO_ANSWER if isinstance(error, BackendUnavailable) else str(error)
    if isinstance(error, PluginError):
        message += f" (request {request_id})"
    headers = {}
    if error.retry_after is not None:
        headers["retry-after"] = str(math.ceil(error.retry_after))
        headers["retry-after-ms"] = str(math.ceil(1000 * error.retry_after))
    if isinstance(error, Unauthorized):
        headers["www-authenticate"] = "Bearer"
    if isinstance(error, MethodNotAllowed):
        headers["allow"] = ", ".join(error.allowed)
    return detail_response(error.status, error.error_type, message, headers, openai=openai)


def detail_response(
    status: int, error_type: str, message: str, headers: Mapping[str, str] | None = None, *, openai: bool = False
) -> JsonResponse:
    """An error that is no list of problems.

    Args:
        status: Its status.
        error_type: Its machine-readable name.
        message: For people.
        headers: Further headers.
        openai: In OpenAI's shape alone, with the status that OpenAI has for it.
    """
    if error_type == AtCapacity.error_type:
        kind = "rate_limit_error"
    else:
        kind = INVALID if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"
    body = openai_error(error_type, message, kind, None)
    if openai:
        return JsonResponse(body, OPENAI_STATUS.get(error_type, status), headers)
    detail = {"error_type": error_type, "message": shown(message, MAX_MESSAGE)}
    return JsonResponse({"detail": detail, **body}, status, headers)


def openai_error(code: str, message: str, kind: str, param: str | None) -> dict[str, Any]:
    """An error as clients of OpenAI's API read it; it also stands beside ``detail`` on every other path."""
    code = OPENAI_CODES.get(code, code)
    return {"error": {"message": shown(message, MAX_MESSAGE), "type": kind, "param": param, "code": code}}


def param_of(loc: Loc) -> str | None:
    """A path as OpenAI writes it: ``questions[0].choices[1].value``; ``None`` for the whole body."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{shown(part, MAX_PART)}" for part in loc[:MAX_PARTS]]
    return "".join(parts).removeprefix(".") or None


def wire_problems(error: RequestError) -> list[dict[str, Any]]:
    """A request's problems, each at a path from ``"body"``; the first :data:`MAX_PROBLEMS` of them."""
    wire = [wire_problem(problem) for problem in error.problems[:MAX_PROBLEMS]]
    if len(error.problems) > MAX_PROBLEMS:
        # How many more is not known: nobody looks for problems that are not shown.
        wire.append({"loc": ["body"], "msg": "there are more problems; mend these first", "type": "more_problems"})
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
