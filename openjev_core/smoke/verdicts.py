"""What a run of checks found, as records and as JSON."""

from __future__ import annotations

import json
import math
from typing import Any, Literal

from attrs import field, frozen

from openjev_core.smoke.calls import Call

SHOWN_BYTES = 16 * 1024
"""How much of a body a result quotes. What is left out is counted in the quote."""

SHOWN_HEADERS = (
    "content-type",
    "location",
    "retry-after",
    "server-timing",
    "www-authenticate",
    "x-openjev-cached-tokens",
    "x-openjev-model",
    "x-openjev-prefix-tokens",
    "x-typesafe-request-id",
)


class Mismatch(Exception):
    """The server did not do what the wire contract says; the message says what was expected and what was found."""


@frozen(kw_only=True)
class Verdict:
    """What became of one check.

    Attributes:
        name: The check's.
        status: ``skipped`` when the server had stopped answering before.
        problem: What was expected and found, unless passed.
        calls: What was sent and what came back, in order.
        latency: Seconds of the last call that evaluated something, or of the last call; ``None`` without one.
        prefix_tokens, cached_tokens: That call's; ``None`` where the server does not report them.
        input_tokens, output_tokens: The same, from its usage.
    """

    name: str
    status: Literal["passed", "failed", "skipped"]
    problem: str | None = None
    calls: tuple[Call, ...] = ()
    latency: float | None = None
    prefix_tokens: int | None = None
    cached_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


@frozen(kw_only=True)
class SmokeReport:
    """A whole run.

    Attributes:
        url: The server.
        started_at: When the run began, ISO 8601 in UTC.
        startup_seconds: How long the server took to become ready, from the first call on; ``None`` if it did not.
        server_startup_seconds: What the server says its own start took.
        model, backend: What the server says answers.
        verdicts: One per check, in order.
        notes: What a person should know beside the verdicts.
    """

    url: str
    started_at: str
    startup_seconds: float | None = None
    server_startup_seconds: float | None = None
    model: str | None = None
    backend: str | None = None
    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether there were checks and every one passed."""
        return bool(self.verdicts) and all(verdict.status == "passed" for verdict in self.verdicts)

    def count(self, status: str) -> int:
        """How many verdicts have that status."""
        return sum(verdict.status == status for verdict in self.verdicts)

    def as_json(self) -> dict[str, Any]:
        """The report as a JSON object; calls of passed checks without their bodies."""
        return {
            "url": self.url,
            "passed": self.passed,
            "started_at": self.started_at,
            "startup_seconds": rounded(self.startup_seconds),
            "server_startup_seconds": rounded(self.server_startup_seconds),
            "model": self.model,
            "backend": self.backend,
            "counts": {status: self.count(status) for status in ("passed", "failed", "skipped")},
            "notes": list(self.notes),
            "checks": [verdict_as_json(verdict) for verdict in self.verdicts],
        }


def verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    """One check of the report."""
    return {
        "name": verdict.name,
        "status": verdict.status,
        "problem": verdict.problem,
        "latency_seconds": rounded(verdict.latency),
        "prefix_tokens": verdict.prefix_tokens,
        "cached_tokens": verdict.cached_tokens,
        "input_tokens": verdict.input_tokens,
        "output_tokens": verdict.output_tokens,
        "calls": [call_as_json(call, whole=verdict.status != "passed") for call in verdict.calls],
    }


def call_as_json(call: Call, *, whole: bool) -> dict[str, Any]:
    """One call of a check, ``whole`` with its bodies."""
    shown = {
        "method": call.method,
        "path": call.path,
        "status": call.status,
        "fault": call.fault,
        "seconds": rounded(call.seconds),
    }
    if not whole:
        return shown
    headers = {name: call.headers[name] for name in SHOWN_HEADERS if name in call.headers}
    return {**shown, "sent": call.sent, "headers": headers, "received": quoted(call.body)}


def quoted(body: bytes, limit: int = SHOWN_BYTES) -> Any:
    """A body as a report quotes it: JSON as it is, anything else as text, cut to ``limit`` bytes with a count."""
    if len(body) > limit:
        return body[:limit].decode("utf-8", "replace") + f"... and {len(body) - limit} bytes more"
    try:
        return json.loads(
            body, parse_constant=lambda name: f"the literal {name}", parse_int=int_or_text, parse_float=float_or_text
        )
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def int_or_text(digits: str) -> int | str:
    """An integer, or its digits where Python refuses to convert that many."""
    try:
        return int(digits)
    except ValueError:
        return digits


def float_or_text(digits: str) -> float | str:
    """A number, or its digits where it is too large for one."""
    value = float(digits)
    return value if math.isfinite(value) else digits


def rounded(seconds: float | None) -> float | None:
    """Seconds to the tenth of a millisecond."""
    return None if seconds is None else round(seconds, 4)
