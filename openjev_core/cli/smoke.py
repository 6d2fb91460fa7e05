"""``openjev smoke``: prove a deployment."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openjev_core.cli.terminal import FAILED, complain, shown
from openjev_core.errors import StartupError

if TYPE_CHECKING:
    from openjev_core.smoke.calls import Call
    from openjev_core.smoke.verdicts import SmokeReport, Verdict

QUOTED_CHARACTERS = 2000
MARKS = {"passed": "ok", "failed": "FAILED", "skipped": "skipped"}


def smoke(
    url: Annotated[str, typer.Argument(envvar="OPENJEV_URL", help="The server's address.", show_envvar=True)],
    *,
    key: Annotated[
        str | None,
        typer.Option(
            help="Bearer key. OPENJEV_API_KEY is taken when it is not given, and does not show in a process list.",
            show_default=False,
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the report to FILE, passed or not.")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds that the server has to become ready.")] = 1800,
    call_timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that it has for each call.")] = 150,
    semantics: Annotated[
        bool,
        typer.Option("--semantics/--no-semantics", help="Whether the answers must make sense; demo models' do not."),
    ] = True,
) -> None:
    """Wait for a running server to be ready, check that it does what the API says, and measure it.

    Exit code 0 when every check passed, 1 otherwise; each failed check shows what was sent and what came back.
    """
    report = run_smoke(
        url,
        key=key,
        json_file=json_file,
        startup_timeout=timeout,
        call_timeout=call_timeout,
        semantics=semantics,
    )
    raise typer.Exit(0 if report.passed else FAILED)


def run_smoke(
    url: str,
    *,
    key: str | None = None,
    json_file: Path | None = None,
    startup_timeout: float = 1800,
    call_timeout: float = 150,
    semantics: bool = True,
) -> SmokeReport:
    """Run the checks, print them as they end, and write the report.

    Args:
        url: The server's address.
        key: Bearer key; ``None`` takes the first of ``OPENJEV_API_KEY``, if there is one.
        json_file: Where the report goes.
        startup_timeout: Seconds that the server has to become ready.
        call_timeout: Seconds that it has for each call.
        semantics: Whether the answers must make sense.

    Raises:
        SettingsError: URL or key are none.
        StartupError: The report cannot be written.
    """
    from openjev_core.cli.setting_flags import settings_from  # noqa: PLC0415
    from openjev_core.cli.terminal import waiting  # noqa: PLC0415
    from openjev_core.plugins.registry import load_registry  # noqa: PLC0415
    from openjev_core.smoke.run import smoke as run  # noqa: PLC0415

    if json_file is not None:
        write_report(json_file, "")  # a path that cannot be written shows before the run, not after it
    registry = load_registry(settings_from({}).settings.disable_plugins)
    with waiting() as progress:
        report = asyncio.run(
            run(
                url,
                registry=registry,
                key=key if key is not None else first_key(),
                startup_timeout=startup_timeout,
                call_timeout=call_timeout,
                semantics=semantics,
                progress=progress,
                told=lambda verdict: print_lines(verdict_lines(verdict)),
            )
        )
    print_lines(summary_lines(report))
    if json_file is not None:
        write_report(json_file, json.dumps(report.as_json(), indent=2, ensure_ascii=False) + "\n")
    return report


def first_key() -> str | None:
    """The first key of ``OPENJEV_API_KEY``, which a server reads as a list."""
    keys = [key.strip() for key in os.environ.get("OPENJEV_API_KEY", "").split(",")]
    return next((key for key in keys if key), None)


def write_report(path: Path, text: str) -> None:
    """Write the report.

    Raises:
        StartupError: It cannot be written there.
    """
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise StartupError(f"--json {path}: {error.strerror or error}") from None


def print_lines(lines: list[str]) -> None:
    """Print lines that hold what a server sent, which must not reach the terminal as it is."""
    for line in lines:
        typer.echo(shown(line))


def verdict_lines(verdict: Verdict) -> list[str]:
    """A check's line, and below it what was sent and what came back, unless it passed."""
    cells = [f"{MARKS[verdict.status]:<7}", f"{verdict.name:<50}"]
    if verdict.latency is not None:
        cells.append(f"{verdict.latency * 1000:8.0f} ms")
    if verdict.prefix_tokens is not None:
        cached = "not reported" if verdict.cached_tokens is None else str(verdict.cached_tokens)
        cells.append(f"prefix {verdict.prefix_tokens}, cached {cached}")
    lines = [" ".join(cells).rstrip()]
    if verdict.status == "failed":
        lines.append(f"        {verdict.problem}")
        lines.extend(f"        {line}" for call in verdict.calls for line in call_lines(call))
    return lines


def call_lines(call: Call) -> list[str]:
    """A call in full, as far as a terminal is the place for it."""
    lines = [f"{call.method} {call.path}: {call.outcome}"]
    if call.sent is not None:
        lines.append(f"  sent {cut(json.dumps(call.sent, ensure_ascii=False))}")
    if call.body:
        lines.append(f"  received {cut(call.body.decode('utf-8', 'replace'))}")
    return lines


def cut(text: str) -> str:
    """``text`` as far as it is shown, with a count of the rest."""
    more = len(text) - QUOTED_CHARACTERS
    return text if more <= 0 else f"{text[:QUOTED_CHARACTERS]}... and {more} characters more (--json has more of it)"


def summary_lines(report: SmokeReport) -> list[str]:
    """The end: notes, counts, and how long the start took."""
    lines = [f"note: {note}" for note in report.notes]
    counts = ", ".join(f"{report.count(status)} {status}" for status in ("passed", "failed", "skipped"))
    if report.startup_seconds is not None:
        lines.append(f"{report.model} on {report.backend} at {report.url}, ready after {report.startup_seconds:.1f} s")
    if any(verdict.status == "failed" and verdict.name.startswith("sense") for verdict in report.verdicts):
        complain("answers that make no sense: a demo model's never do; --no-semantics leaves these checks out")
    lines.append(counts)
    return lines
