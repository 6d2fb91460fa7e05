"""Runs over files of rows: a model or server that answers, the records, progress and refusals."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from openjev_core.cli.setting_flags import settings_from
from openjev_core.cli.terminal import FAILED, complain, waiting
from openjev_core.errors import SettingsError

if TYPE_CHECKING:
    from openjev_core.datasets.askers import Asker
    from openjev_core.datasets.rows import Row
    from openjev_core.engine.engine import Engine
    from openjev_core.plugins.registry import Registry
    from openjev_core.settings import Settings

CONCURRENCY = 4

WITH_A_SERVER = frozenset({"orders", "model", "request_timeout", "disable_plugins"})
"""Settings that hold where a server answers too: the orders and the model id that it is asked for, its time limit, the
types of labels."""


def settings_for(url: str | None, flags: Mapping[str, Any], with_a_server: Collection[str] = WITH_A_SERVER) -> Settings:
    """The settings of a command.

    Args:
        url: The server that is asked; ``None`` where a model in this process is.
        flags: The command's flags for settings.
        with_a_server: Names of those that hold where a server answers.

    Raises:
        SettingsError: A flag configures a model in this process, and a server answers.
    """
    if url is not None:
        for name, value in flags.items():
            if value is not None and name not in with_a_server:
                flag = name.replace("_", "-")
                raise SettingsError(f"--{flag} configures a model in this process; with --url the server's own holds")
    return settings_from(flags).settings


@asynccontextmanager
async def open_asker(
    url: str | None, settings: Settings, flags: Mapping[str, Any], registry: Registry, concurrency: int | None
) -> AsyncIterator[tuple[Asker, int]]:
    """An asker, and how many rows may be in flight."""
    from openjev_core.datasets.askers import EngineAsker, open_http  # noqa: PLC0415

    if url is None:
        async with open_here(settings, registry) as engine:
            yield EngineAsker(engine), places(concurrency, engine)
        return
    wanted = concurrency or CONCURRENCY
    async with open_http(
        url,
        # Only by the flag: the environment variable is the server's own setting.
        orders=None if flags.get("orders") is None else settings.orders,
        api_key=settings.api_key[0] if settings.api_key else None,
        seconds=settings.request_timeout,
        concurrency=wanted,
        # As above.
        model=flags.get("model"),
    ) as asker:
        yield asker, wanted


@asynccontextmanager
async def open_here(settings: Settings, registry: Registry) -> AsyncIterator[Engine]:
    """An engine in this process."""
    from openjev_core.engine import opening  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        with waiting() as progress:
            opened = opening.open_engine(settings, registry=registry, progress=progress)
            engine = await stack.enter_async_context(opened)
        if engine.model.demo:
            complain(f"warning: {engine.model.public_name} is a demo model and no classifier; give a better --model")
        yield engine


def places(wanted: int | None, engine: Engine) -> int:
    """How many rows an engine in this process may have in flight.

    Raises:
        SettingsError: More rows are wanted than the engine admits.
    """
    limit = engine.settings.max_concurrent_requests
    if wanted is not None and wanted > limit:
        raise SettingsError(
            f"--concurrency {wanted}: a model in this process takes up to {limit} at once "
            "(OPENJEV_MAX_CONCURRENT_REQUESTS)"
        )
    # The embedded model answers one after another: a second row would only wait, with its deadline running.
    return wanted or (1 if engine.model.one_at_a_time else min(CONCURRENCY, limit))


async def recorded(
    rows: Sequence[Row],
    record: Callable[[Row], Awaitable[dict[str, Any]]],
    path: Path,
    header: Mapping[str, Any],
    concurrency: int,
) -> list[dict[str, Any]]:
    """The record of every row, in row order: those that the run's file has already, and new ones.

    Args:
        rows: All rows.
        record: Answers a row and makes its record.
        path: The run's file.
        header: What the run is.
        concurrency: Rows in flight at once.
    """
    from openjev_core.datasets.runs import open_run, run_rows  # noqa: PLC0415

    with open_run(path, header, rows) as run, counting(len(run.done), len(rows)) as count:
        await run_rows(rows, record, run, concurrency=concurrency, answered=count)
        return [run.done[row.number] for row in rows]


@contextmanager
def counting(done: int, total: int) -> Iterator[Callable[[], None]]:
    """A function to call after each row. Shows a bar on a terminal, and a line now and then elsewhere.

    Failed attempts are reported when they are made again, and an early end with the number of rows that are kept.
    """
    if done:
        complain(f"{done} of {total} rows were answered before; going on with the others")
    answered = done
    try:
        with _reported_retries(), _progress(done, total) as show:

            def count() -> None:
                nonlocal answered
                answered += 1
                show(answered)

            yield count
    except BaseException:  # a Ctrl-C, too
        complain(f"{answered} of {total} rows are answered and kept; the same command again goes on with the others")
        raise


@contextmanager
def _progress(done: int, total: int) -> Iterator[Callable[[int], None]]:
    """A function that shows how many rows are answered."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda answered: _complain_now_and_then(answered, total)
        return
    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("rows", total=total, completed=done)
        yield lambda answered: progress.update(task, completed=answered)


def _complain_now_and_then(answered: int, total: int) -> None:
    if answered % max(1, total // 10) == 0 or answered == total:
        complain(f"{answered} of {total} rows answered")


@contextmanager
def _reported_retries() -> Iterator[None]:
    """Report why an attempt is made again; the retrying library's own log gives its name and no reason."""
    from stamina.instrumentation import RetryDetails, set_on_retry_hooks  # noqa: PLC0415

    def report(details: RetryDetails) -> None:
        cause = details.caused_by
        complain(f"trying again in {details.wait_for:.1f} s: {str(cause) or type(cause).__name__}")

    set_on_retry_hooks([report])
    try:
        yield
    finally:
        set_on_retry_hooks(None)


def made_of(data: Path) -> dict[str, Any]:
    """When, of which data and by which openjev a report is made."""
    import hashlib  # noqa: PLC0415 - slow to import, as OpenSSL is

    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "by": f"openjev {version('openjev')}",
        "data": str(data),
        "sha256 of the data": hashlib.sha256(data.read_bytes()).hexdigest(),
    }


def end_with_refusals(records: Sequence[Mapping[str, Any]], most: int = 10) -> None:
    """Report the rows that were refused, if there are any.

    Raises:
        typer.Exit: A row was refused.
    """
    refused = [record for record in records if "error" in record]
    for record in refused[:most]:
        complain(f"row {record['row']} ({record['id']}) was refused: {record['error']}")
    if len(refused) > most:
        complain(f"{len(refused)} rows were refused in all")
    if refused:
        raise typer.Exit(FAILED)
