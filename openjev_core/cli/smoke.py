"""``openjev smoke``: prove a deployment."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openjev_core.cli.plugins import installed_types
from openjev_core.cli.setting_flags import settings_from
from openjev_core.cli.terminal import FAILED, complain, shown, waiting
from openjev_core.errors import StartupError

if TYPE_CHECKING:
    from openjev_core.smoke.report import SmokeReport, Verdict

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
    """Wait for a running server to be ready, check that it answers as its clients need, and measure it.

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
        SettingsError: The address or the key is none.
        StartupError: The report cannot be written.
    """
    from openjev_core.smoke.report import smoke as run  # noqa: PLC0415

    if json_file is not None:
        write_report(json_file, "")  # a path that cannot be written shows before the run, not after it
    # A server takes a list of keys.
    keys = [name.strip() for name in os.environ.get("OPENJEV_API_KEY", "").split(",")]
    with waiting() as progress:
        import asyncio  # noqa: PLC0415 - slow to import

        report = asyncio.run(
            run(
                url,
                registry=installed_types(settings_from({}).settings),
                key=key if key is not None else next(filter(None, keys), None),
                startup_timeout=startup_timeout,
                call_timeout=call_timeout,
                semantics=semantics,
                progress=progress,
                finished=lambda verdict: print_lines(verdict_lines(verdict)),
            )
        )
    if any(verdict.status == "failed" and verdict.name.startswith("sense") for verdict in report.verdicts):
        complain("answers that make no sense: a demo model's never do; --no-semantics leaves these checks out")
    print_lines(summary_lines(report))
    if json_file is not None:
        write_report(json_file, json.dumps(report.json(), indent=2, ensure_ascii=False) + "\n")
    return report


def write_report(path: Path, text: str) -> None:
    """Write the report.

    Raises:
        StartupError: The file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise StartupError(f"--json {path}: {error.strerror or error}") from None


def print_lines(lines: list[str]) -> None:
    """Print lines that hold what a server sent, without anything that a terminal would obey."""
    for line in lines:
        typer.echo(shown(line))


def verdict_lines(verdict: Verdict) -> list[str]:
    """A check's line, and below a failed one what was sent and what came back."""
    from openjev_core.smoke.report import quoted  # noqa: PLC0415

    cells = [f"{MARKS[verdict.status]:<7}", f"{verdict.name:<50}"]
    if verdict.cost:
        cached = verdict.cost["cached_tokens"]
        cells.append(f"{verdict.cost['latency_seconds'] * 1000:8.0f} ms")
        cells.append(f"prefix {verdict.cost['prefix_tokens']}, cached {'not reported' if cached is None else cached}")
    lines = [" ".join(cells).rstrip()]
    if verdict.status == "failed":
        lines.append(f"        {verdict.problem}")
        for call in verdict.calls:
            lines.append(f"        {call.method} {call.path}: {call.outcome}")
            if call.sent is not None:
                sent = json.dumps(call.sent, ensure_ascii=False).encode("utf-8", "backslashreplace")
                lines.append(f"          sent {quoted(sent, QUOTED_CHARACTERS)}")
            if call.body:
                lines.append(f"          received {quoted(call.body, QUOTED_CHARACTERS)}")
    return lines


def summary_lines(report: SmokeReport) -> list[str]:
    """The end: notes, how long the start took, and counts."""
    lines = [f"note: {note}" for note in report.notes]
    if report.startup_seconds is not None:
        lines.append(f"{report.model} on {report.backend} at {report.url}, ready after {report.startup_seconds:.1f} s")
    return [*lines, ", ".join(f"{count} {status}" for status, count in report.counts.items())]
