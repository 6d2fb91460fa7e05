"""The flags of the commands that answer files of rows."""

from __future__ import annotations

import atexit
import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from openjev_core.errors import SettingsError

if TYPE_CHECKING:
    from openjev_core.datasets.rows import Columns

F = TypeVar("F", bound=Callable[..., Any])

ROWS_PANEL = "What the rows hold"

Data = Annotated[
    Path,
    typer.Argument(metavar="DATA|-", help="Rows as .jsonl, .csv, .tsv or .parquet; - for JSONL from standard input."),
]

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
    bool | None,
    typer.Option(
        "--state-json/--state-text",
        help="Read the state's column as JSON text: a chat or an object that CSV or Parquet holds; or as the text that "
        "it is, even where every state is JSON.",
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
        "--url",
        metavar="URL",
        help="Ask a running server as its client: one of this API, or with an address that ends in /v1/decisions one "
        "of OpenAI's. OPENJEV_API_KEY is sent as its key, --model as its model's id. Without it, a model in this "
        "process answers, or one that --connect opens behind it.",
    ),
]


COLUMN_FLAGS: Mapping[str, Any] = {
    "questions": QuestionsFile,
    "state_column": StateColumns,
    "state_json": JsonState,
    "id_column": IdColumn,
    "label": LabelColumns,
    "delimiter": Delimiter,
    "encoding": Encoding,
}


def takes_columns(without: Collection[str] = ()) -> Callable[[F], F]:
    """Give a command the flags that say what the rows hold. It gets them as keyword arguments, for `columns_from`.

    Args:
        without: Names of flags that the command has no use for.
    """
    flags = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in COLUMN_FLAGS.items()
        if name not in without
    ]

    def decorate(command: F) -> F:
        signature = inspect.signature(command, eval_str=True)
        *own, others = signature.parameters.values()
        command.__signature__ = signature.replace(parameters=[*own, *flags, others])  # type: ignore[attr-defined]  # typer reads it
        return command

    return decorate


def columns_from(flags: dict[str, Any]) -> Columns:
    """The column mapping that the flags describe. They are taken out of ``flags``.

    Raises:
        SettingsError: A ``--label`` is not of its form, or names a question twice; or the delimiter is no character.
        RequestError: The file of questions cannot be read, or holds something else.
    """
    from openjev_core.datasets.rows import Columns, read_questions  # noqa: PLC0415

    given = {name: flags.pop(name, None) for name in COLUMN_FLAGS}
    questions, delimiter = given["questions"], given["delimiter"]
    labels: dict[str, str] = {}
    for pair in given["label"] or ():
        question, found, column = pair.partition("=")
        if not (found and question and column):
            raise SettingsError(f"--label {pair}: expected QUESTION=COLUMN")
        if question in labels:
            raise SettingsError(f"--label {pair}: question {question!r} has a column already, {labels[question]!r}")
        labels[question] = column
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise SettingsError(f"--delimiter {delimiter!r}: expected one character, such as ; or a tab")
    return Columns(
        state=tuple(given["state_column"] or ("state",)),
        id=given["id_column"],
        labels=labels,
        questions=None if questions is None else read_questions(questions),
        json_state=given["state_json"],
        delimiter=delimiter,
        encoding=given["encoding"],
    )


def rows_file(data: Path) -> Path:
    """The file of rows; for ``-`` one that holds what standard input gave, until this process ends."""
    if str(data) != "-":
        return data
    folder = TemporaryDirectory(prefix="openjev-")
    atexit.register(folder.cleanup)
    path = Path(folder.name) / "stdin.jsonl"
    path.write_bytes(sys.stdin.buffer.read())
    return path


def run_path(given: Path | None, data: Path, command: str) -> Path:
    """The run's file: the one given, or one in this folder that is named after the data."""
    return given or Path(f"{data.stem}.{command}.jsonl")


def check_apart(**files: Any) -> None:
    """Refuse to write a file over another file of the same command, or into a folder that is not there.

    Raises:
        SettingsError: Two of the paths are one file, or a file's folder does not exist.
    """
    seen: dict[Path, str] = {}
    for name, file in files.items():
        if not isinstance(file, Path) or str(file) == "-":
            continue
        place = file.resolve()
        if place in seen:
            raise SettingsError(f"{seen[place]} and {name} are both {file}; they must be different files")
        seen[place] = name
        # That of a run is made.
        if name != "--run" and not place.parent.is_dir():
            raise SettingsError(f"{name} {file}: cannot be written: there is no folder {file.parent}; make it first")
