"""Running the checks, one after another."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import attrs

from openjev_core.plugins.registry import Registry
from openjev_core.smoke.calls import Call, Service, checked_key, checked_url
from openjev_core.smoke.checks import CONTRACT, Check
from openjev_core.smoke.examination import PATH, Examination
from openjev_core.smoke.expectations import header_integer
from openjev_core.smoke.plugin_checks import other_types, plugin_checks
from openjev_core.smoke.semantics import SEMANTICS
from openjev_core.smoke.startup import NeverReady, Progress, wait_until_ready
from openjev_core.smoke.verdicts import Mismatch, SmokeReport, Verdict, quoted

STARTUP_SECONDS = 1800.0
CALL_SECONDS = 150.0
"""Longer than the 120 seconds after which a server ends an evaluation by itself, so that its own error is seen."""

HANGS = 2
"""After so many checks in a row whose reply did not come in time, the rest are not tried."""

Told = Callable[[Verdict], None]


async def smoke(
    url: str,
    *,
    registry: Registry,
    key: str | None = None,
    startup_timeout: float = STARTUP_SECONDS,
    call_timeout: float = CALL_SECONDS,
    semantics: bool = True,
    progress: Progress = lambda _line: None,
    told: Told = lambda _verdict: None,
) -> SmokeReport:
    """Wait for a server to be ready, then run every check against it.

    Args:
        url: Where it is.
        registry: Whose question types' examples are asked.
        key: Bearer key, where it wants one.
        startup_timeout: Seconds that it has to become ready.
        call_timeout: Seconds that it has for each call.
        semantics: Run the checks that a demo model would fail, too.
        progress: Takes lines on what is being waited for.
        told: Takes each verdict as soon as it is there.

    Returns:
        The report; a server that fails, lies or hangs is in it, not raised.

    Raises:
        SettingsError: URL or key are none.
    """
    address, key = checked_url(url), checked_key(key)
    report = SmokeReport(url=address, started_at=datetime.now(UTC).isoformat(timespec="seconds"))
    async with Service(address, key=key, patience=call_timeout) as service:
        began = time.monotonic()
        try:
            ready = await wait_until_ready(service, startup_timeout, progress)
        except NeverReady as error:
            verdict = Verdict(name="ready", status="failed", problem=str(error), calls=(error.call,))
            told(verdict)
            return attrs.evolve(report, verdicts=(verdict,))
        examination = Examination(service, ready.health["model"])
        first = Verdict(name="ready", status="passed", latency=time.monotonic() - began)
        told(first)
        checks = (*CONTRACT, schema_check(registry), *plugin_checks(registry), *(SEMANTICS if semantics else ()))
        verdicts = (first, *await run_checks(checks, examination, told))
        return attrs.evolve(
            report,
            startup_seconds=ready.seconds,
            server_startup_seconds=float(ready.health["startup_seconds"]),
            model=examination.model,
            backend=ready.health["backend"]["name"],
            verdicts=verdicts,
            notes=tuple(examination.notes),
        )


def schema_check(registry: Registry) -> Check:
    """The check that also notes which question types are not checked."""

    async def run(examination: Examination) -> None:
        await other_types(examination, registry)

    return Check("schema", run)


async def run_checks(checks: tuple[Check, ...], examination: Examination, told: Told) -> tuple[Verdict, ...]:
    """Run checks one after another, until the server answers no more."""
    verdicts: list[Verdict] = []
    hung = 0
    for check in checks:
        if hung >= HANGS:
            verdict = Verdict(name=check.name, status="skipped", problem="not tried: the server had stopped answering")
        else:
            verdict = await run_check(check, examination)
            hung = hung + 1 if any(call.timed_out for call in verdict.calls) else 0
        verdicts.append(verdict)
        told(verdict)
    return tuple(verdicts)


async def run_check(check: Check, examination: Examination) -> Verdict:
    """Run one check."""
    examination.calls = []
    problem = None
    try:
        await check.run(examination)
    except Mismatch as error:
        problem = str(error)
    calls = tuple(examination.calls)
    measured = {} if not calls else measurements(next((c for c in reversed(calls) if c.path == PATH), calls[-1]))
    return Verdict(name=check.name, status="failed" if problem else "passed", problem=problem, calls=calls, **measured)


def measurements(call: Call) -> dict[str, Any]:
    """What a call cost, as far as the server says."""
    body = quoted(call.body, limit=len(call.body))
    usage = body.get("usage") if isinstance(body, dict) else None
    counts = usage if isinstance(usage, dict) else {}
    tokens = {
        name: counts[name] if type(counts.get(name)) is int else None for name in ("input_tokens", "output_tokens")
    }
    return {
        "latency": call.seconds,
        "prefix_tokens": count_or_none(call, "x-openjev-prefix-tokens"),
        "cached_tokens": count_or_none(call, "x-openjev-cached-tokens"),
        **tokens,
    }


def count_or_none(call: Call, name: str) -> int | None:
    """A counting header, ``None`` where it is missing or no count: the check itself says so."""
    try:
        return header_integer(call, name)
    except Mismatch:
        return None
