"""Errors as the wire contract writes them: small, and valid JSON whatever the request held."""

from __future__ import annotations

from typing import Any

from openjev_core.api.exchange import Header, Reply
from openjev_core.api.json_reply import json_reply
from openjev_core.errors import (
    BackendUnavailable,
    MethodNotAllowed,
    OpenJevError,
    PluginError,
    Problem,
    RequestError,
    Unauthorized,
)

RETRY = "send the request again shortly"
MAX_PROBLEMS = 20
MAX_MESSAGE = 600
MAX_PARTS = 16
MAX_PART = 120


def error_reply(error: Exception, request_id: str) -> Reply:
    """The reply to a request that ended in ``error``. What is not openjev's own error shows nothing of itself."""
    if isinstance(error, RequestError):
        return json_reply(RequestError.status, {"detail": wire_problems(error)})
    if not isinstance(error, OpenJevError) or error.status is None:
        message = f"internal error; the server's log has it under request {request_id}"
        return detail_reply(500, "internal_error", message)
    # Addresses and library words of a failed connection are for the log, not for clients.
    message = f"the backend does not answer; {RETRY}" if isinstance(error, BackendUnavailable) else str(error)
    if isinstance(error, PluginError):
        message += f" (request {request_id})"
    headers: list[Header] = []
    if error.retry_after is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after))
    if isinstance(error, Unauthorized):
        headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, MethodNotAllowed):
        headers.append((b"allow", ", ".join(error.allowed).encode()))
    return detail_reply(error.status, error.error_type, message, tuple(headers))


def detail_reply(status: int, error_type: str, message: str, headers: tuple[Header, ...] = ()) -> Reply:
    """An error that is no list of problems."""
    detail = {"error_type": error_type, "message": shown(message, MAX_MESSAGE)}
    return json_reply(status, {"detail": detail}, headers)


def wire_problems(error: RequestError) -> list[dict[str, Any]]:
    """A request's problems, each at a path from ``"body"``; the first :data:`MAX_PROBLEMS` of them."""
    wire = [wire_problem(problem) for problem in error.problems[:MAX_PROBLEMS]]
    if (more := len(error.problems) - MAX_PROBLEMS) > 0:
        wire.append({"loc": ["body"], "msg": f"and {more} more problems", "type": "more_problems"})
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
