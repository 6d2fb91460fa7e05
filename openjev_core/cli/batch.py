"""``openjev batch``: answers for a file of rows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openjev_core.cli.answering import counting, installed_types, open_asker, refused_lines, settings_for
from openjev_core.cli.failures import FAILED, complain
from openjev_core.cli.row_flags import (
    Concurrency,
    Data,
    IdColumn,
    QuestionsFile,
    RunPath,
    StateColumns,
    Url,
    check_apart,
    columns_from,
    run_path,
)
from openjev_core.cli.setting_flags import OF_THE_SERVER, takes_settings

if TYPE_CHECKING:
    from openjev_core.evaluating.rows import Row
    from openjev_core.plugins.registry import Registry
    from openjev_core.settings import Settings


@takes_settings(without=OF_THE_SERVER)
def batch(
    data: Data,
    *,
    url: Url = None,
    run: RunPath = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write rows with their answers as .csv, .tsv, .parquet or .jsonl, when all are there."
        ),
    ] = None,
    concurrency: Concurrency = None,
    questions: QuestionsFile = None,
    state_column: StateColumns = None,
    id_column: IdColumn = None,
    **flags: Any,
) -> None:
    """Answer every row of a file.

    A row is {"state": ..., "questions": {ID: QUESTION}}, and may have an "id". A run that was stopped goes on where it
    ended when the same command is given again; no row is answered twice.
    """
    from openjev_core.evaluating.checking import check_questions  # noqa: PLC0415
    from openjev_core.evaluating.exporting import check_export, export  # noqa: PLC0415
    from openjev_core.evaluating.rows import read_rows  # noqa: PLC0415
    from openjev_core.plugins.structuring import QuestionConverter  # noqa: PLC0415

    path = run_path(run, data, "batch")
    check_apart(DATA=data, **{"--run": path, "--out": out})
    if out is not None:
        check_export(out)
    columns = columns_from(questions=questions, state_column=state_column, id_column=id_column)
    settings = settings_for(url, flags)
    registry = installed_types(settings)
    rows = read_rows(data, columns)
    # A server may have types that are not installed here, and says itself what is wrong with them.
    check_questions(rows, QuestionConverter(registry), known=None if url is None else frozenset(registry.types))
    records = asyncio.run(_answered(rows, path, url, settings, flags, registry, concurrency))
    if out is not None:
        export(out, rows, {record["row"]: record for record in records})
    complain(f"{len(records)} rows are in {path}" + (f" and {out}" if out is not None else ""))
    if refused := refused_lines(records):
        for line in refused:
            complain(line)
        raise typer.Exit(FAILED)


async def _answered(  # noqa: PLR0917 - what a run depends on
    rows: Sequence[Row],
    path: Path,
    url: str | None,
    settings: Settings,
    flags: Mapping[str, Any],
    registry: Registry,
    concurrency: int | None,
) -> list[dict[str, Any]]:
    """The run's records, in row order."""
    from openjev_core.evaluating.recording import AnswerRecorder  # noqa: PLC0415
    from openjev_core.evaluating.run_file import open_run  # noqa: PLC0415
    from openjev_core.evaluating.running import run_rows  # noqa: PLC0415

    async with open_asker(url, settings, flags, registry, concurrency) as (asker, at_once):
        header = {"command": "batch", **asker.source}
        recorder = AnswerRecorder(asker)
        with open_run(path, header, rows) as run, counting(len(run.done), len(rows)) as count:
            await run_rows(rows, lambda row: row.number, recorder.record, run, concurrency=at_once, answered=count)
            return [run.done[row.number] for row in rows]
