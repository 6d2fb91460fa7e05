"""What the commands that answer files of rows share: flags, who answers, the run and its progress."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openjev_core.cli.setting_flags import settings_from
from openjev_core.cli.terminal import FAILED, complain, waiting
from openjev_core.errors import SettingsError

if TYPE_CHECKING:
    from openjev_core.datasets.askers import Asker
    from openjev_core.datasets.rows import Columns, Row
    from openjev_core.engine.engine import Engine
    from openjev_core.plugins.registry import Registry
    from openjev_core.settings import Settings

ROWS_PANEL = "What the rows hold"

Data = Annotated[Path, typer.Argument(metavar="DATA", help="Rows as .jsonl, .csv, .tsv or .parquet.")]

QuestionsFile = Annotated[
    Path | None,
    typer.Option(
        "--questions",
        metavar="FILE",
        help="Questions for every row: a JSON object of ids and questions. Without it, each row has its own in the "
        "column questions.",
        rich_help_panel=ROWS_PANEL,
    ),
]
StateColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--state-column",
        metavar="COLUMN",
        help="The column of the state (default: state). Repeated: the state is an object of these columns.",
        rich_help_panel=ROWS_PANEL,
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id-column",
        metavar="COLUMN",
        help="A column that names each row (default: id, where there is one; else the row's number).",
        rich_help_panel=ROWS_PANEL,
    ),
]
LabelColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="QUESTION=COLUMN",
        help="The column of a question's labels. Repeatable. Without it, each row has its own in the column labels.",
        rich_help_panel=ROWS_PANEL,
    ),
]
JsonState = Annotated[
    bool,
    typer.Option(
        "--state-json",
        help="Read the state's column as JSON text: a chat or an object that CSV or Parquet holds.",
        rich_help_panel=ROWS_PANEL,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        help="Between the cells of CSV (default: a comma; a semicolon or tab where the header has no comma).",
        rich_help_panel=ROWS_PANEL,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Of text files without a byte order mark, such as cp1252 (default: utf-8).",
        rich_help_panel=ROWS_PANEL,
    ),
]
EscapeFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="In CSV from --out, put an apostrophe before texts that a spreadsheet would run as formulas.",
    ),
]
RunPath = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="FILE",
        help="Where answers are kept as they come, one line per row: the same command again goes on from there "
        "(default: named after DATA, in this folder).",
    ),
]
ReportJson = Annotated[
    Path | None, typer.Option("--json", metavar="FILE|-", help="Write the report as JSON; - prints it instead.")
]
ReportHtml = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write the report as one HTML page that loads nothing."),
]
Concurrency = Annotated[
    int | None,
    typer.Option(min=1, help="Rows in flight at once (default: 4; 1 on the embedded engine).", show_default=False),
]
Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Ask a running server of this API; OPENJEV_API_KEY is sent as its key. Without it, a model in this "
        "process answers.",
    ),
]

CONCURRENCY = 4

WITH_A_SERVER = frozenset({"orders", "request_timeout", "disable_plugins"})
"""Settings that hold where a server answers too: the orders it is asked for, its time limit, the types of labels."""


def columns_from(
    *,
    questions: Path | None,
    state_column: Sequence[str] | None,
    id_column: str | None,
    label: Sequence[str] | None = None,
    state_json: bool,
    delimiter: str | None,
    encoding: str | None,
) -> Columns:
    """The column mapping that the flags describe.

    Raises:
        SettingsError: A ``--label`` is not of its form, or names a question twice; or the delimiter is no character.
        RequestError: The file of questions cannot be read, or holds something else.
    """
    from openjev_core.datasets.rows import Columns, read_questions  # noqa: PLC0415

    labels: dict[str, str] = {}
    for pair in label or ():
        question, found, column = pair.partition("=")
        if not (found and question and column):
            raise SettingsError(f"--label {pair}: expected QUESTION=COLUMN")
        if question in labels:
            raise SettingsError(f"--label {pair}: question {question!r} has a column already, {labels[question]!r}")
        labels[question] = column
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise SettingsError(f"--delimiter {delimiter!r}: expected one character, such as ; or a tab")
    return Columns(
        state=tuple(state_column or ("state",)),
        id=id_column,
        labels=labels,
        questions=None if questions is None else read_questions(questions),
        json_state=state_json,
        delimiter=delimiter,
        encoding=encoding,
    )


def run_path(given: Path | None, data: Path, command: str) -> Path:
    """The run's file: the one given, or one in this folder that is named after the data."""
    return given or Path(f"{data.stem}.{command}.jsonl")


def check_apart(**files: Any) -> None:
    """Refuse to write a file over another file of the same command.

    Raises:
        SettingsError: Two of the paths are one file.
    """
    seen: dict[Path, str] = {}
    for name, file in files.items():
        if not isinstance(file, Path) or str(file) == "-":
            continue
        place = file.resolve()
        if place in seen:
            raise SettingsError(f"{seen[place]} and {name} are both {file}; they must be different files")
        seen[place] = name


def installed_types(settings: Settings) -> Registry:
    """The installed question types, with a warning for each plugin that did not load."""
    from openjev_core.plugins.registry import load_registry  # noqa: PLC0415

    registry = load_registry(settings.disable_plugins)
    for entry in registry.failures:
        complain(f"warning: plugin {entry.name} of {entry.distribution} {entry.version} did not load: {entry.cause}")
    return registry


def settings_for(url: str | None, flags: Mapping[str, Any]) -> Settings:
    """The settings of a command on rows.

    Raises:
        SettingsError: A flag configures a model in this process, and a server answers.
    """
    if url is not None:
        for name, value in flags.items():
            if value is not None and name not in WITH_A_SERVER:
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
    return wanted or (1 if engine.model.backend.name == "llama.cpp" else min(CONCURRENCY, limit))


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
