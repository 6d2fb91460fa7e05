"""Running the checks one after another, and the report on what they found."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import attrs
from attrs import field, frozen

from openjev_core.plugins.registry import Registry
from openjev_core.smoke.checks import SENSE, Check, Examination, contract_checks, cost_of
from openjev_core.smoke.server import Call, Mismatch, NeverReady, Progress, open_server, wait_until_ready

STARTUP_SECONDS = 1800.0
CALL_SECONDS = 150.0
"""Longer than the 120 seconds after which a server ends an evaluation by itself, so that its own error is seen."""

LITTLE_MASS = 0.5
"""Of an answer whose labels held less of the model's probability than this, most was on something else."""

SHOWN_CHARACTERS = 16 * 1024
"""Upper bound on what the report quotes of a reply."""


@frozen(kw_only=True)
class Verdict:
    """What became of one check.

    Attributes:
        name: The check's.
        status: ``skipped`` when the server had stopped answering before.
        problem: What was expected and found; ``None`` when the check passed.
        calls: What was sent and what came back, in order.
        cost: Seconds and tokens of the last evaluation, as far as the server says; empty without one.
    """

    name: str
    status: Literal["passed", "failed", "skipped"]
    problem: str | None = None
    calls: tuple[Call, ...] = ()
    cost: dict[str, Any] = field(factory=dict)

    def json(self) -> dict[str, Any]:
        """As JSON; the calls of a failed check with their bodies."""
        shown = [call_json(call, whole=self.status == "failed") for call in self.calls]
        return {"name": self.name, "status": self.status, "problem": self.problem, **self.cost, "calls": shown}


@frozen(kw_only=True)
class SmokeReport:
    """A whole run.

    Attributes:
        url: The server.
        started_at: When the run began, ISO 8601 in UTC.
        startup_seconds: How long the server took to become ready, from the first call on; ``None`` if it did not.
        server_startup_seconds: The duration of its own start, as the server says.
        model, backend: What answers, as the server says.
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
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether there were checks and every one passed."""
        return bool(self.verdicts) and all(verdict.status == "passed" for verdict in self.verdicts)

    @property
    def counts(self) -> dict[str, int]:
        """Status to the number of its verdicts."""
        statuses = [verdict.status for verdict in self.verdicts]
        return {status: statuses.count(status) for status in ("passed", "failed", "skipped")}

    def json(self) -> dict[str, Any]:
        """As a JSON object."""
        facts = attrs.asdict(self, recurse=False)
        verdicts = facts.pop("verdicts")
        return {**facts, "passed": self.passed, "counts": self.counts, "checks": [one.json() for one in verdicts]}


def call_json(call: Call, *, whole: bool) -> dict[str, Any]:
    """A call as JSON, ``whole`` with what was sent and what came back."""
    shown = {name: getattr(call, name) for name in ("method", "path", "status", "fault")}
    shown["seconds"] = round(call.seconds, 4)
    if whole:
        shown |= {"sent": call.sent, "headers": dict(call.headers), "received": quoted(call.body, SHOWN_CHARACTERS)}
    return shown


def quoted(body: bytes, most: int) -> str:
    """A body as text, cut to ``most`` characters with a count of the rest."""
    text = body.decode("utf-8", "replace")
    return text if len(text) <= most else f"{text[:most]}... and {len(text) - most} characters more"


def mass_notes(masses: Sequence[float]) -> list[str]:
    """How much of the model's probability the labels held; nothing where the engine does not say."""
    if not masses:
        return []
    found = f"the labels held {statistics.mean(masses):.1%} of the model's probability, {min(masses):.1%} at least"
    low = "; where it is low, the model would have said something else" if min(masses) < LITTLE_MASS else ""
    return [found + low]


async def smoke(
    url: str,
    *,
    registry: Registry,
    key: str | None = None,
    startup_timeout: float = STARTUP_SECONDS,
    call_timeout: float = CALL_SECONDS,
    semantics: bool = True,
    progress: Progress = lambda _line: None,
    finished: Callable[[Verdict], None] = lambda _verdict: None,
) -> SmokeReport:
    """Wait for a server to be ready, then run every check against it.

    Args:
        url: Its address.
        registry: The question types whose examples are asked.
        key: Bearer key, where the server wants one.
        startup_timeout: Seconds that the server has to become ready.
        call_timeout: Seconds that it has for each call.
        semantics: Whether the answers must make sense, which a demo model's do not.
        progress: Takes lines on what is being waited for.
        finished: Takes each verdict as soon as it is known.

    Returns:
        The report. A server that fails, lies or hangs is in it, and raises nothing.

    Raises:
        SettingsError: The address or the key is none.
    """
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    async with open_server(url, key, call_timeout) as server:
        report = SmokeReport(url=server.url, started_at=started_at)
        began = time.monotonic()
        try:
            health = await wait_until_ready(server, startup_timeout, progress)
        except NeverReady as error:
            verdict = Verdict(name="ready", status="failed", problem=str(error), calls=tuple(server.calls))
            finished(verdict)
            return attrs.evolve(report, verdicts=(verdict,))
        seconds, ready = time.monotonic() - began, Verdict(name="ready", status="passed")
        finished(ready)
        silent = [t.name for t in registry.types.values() if not t.examples]
        notes = [f"not checked, since they ship no examples: {', '.join(silent)}"] if silent else []
        examination = Examination(server, health["model"], registry, notes)
        checks = (*contract_checks(registry), *(SENSE if semantics else ()))
        return attrs.evolve(
            report,
            startup_seconds=round(seconds, 4),
            server_startup_seconds=health["startup_seconds"],
            model=health["model"],
            backend=health["backend"]["name"],
            verdicts=(ready, *await run_checks(checks, examination, finished)),
            notes=(*examination.notes, *mass_notes(examination.masses)),
        )


async def run_checks(
    checks: tuple[Check, ...], examination: Examination, finished: Callable[[Verdict], None]
) -> list[Verdict]:
    """Run checks one after another. After a reply that does not come in time, the rest are skipped."""
    verdicts: list[Verdict] = []
    hangs = False
    for check in checks:
        if hangs:
            verdict = Verdict(name=check.name, status="skipped", problem="not tried: the server had stopped answering")
        else:
            verdict = await run_check(check, examination)
            hangs = any(call.timed_out for call in verdict.calls)
        verdicts.append(verdict)
        finished(verdict)
    return verdicts


async def run_check(check: Check, examination: Examination) -> Verdict:
    """Run one check."""
    examination.server.calls.clear()
    problem = None
    try:
        await check.run(examination)
    except Mismatch as error:
        problem = str(error)
    calls = tuple(examination.server.calls)
    status: Literal["passed", "failed"] = "failed" if problem else "passed"
    return Verdict(name=check.name, status=status, problem=problem, calls=calls, cost=cost_of(list(calls)))
