"""``openjev batch``: answers for a file of rows."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from openjev_core.cli.plugins import installed_types
from openjev_core.cli.row_flags import (
    Concurrency,
    Data,
    EscapeFormulas,
    RunPath,
    Url,
    check_apart,
    columns_from,
    rows_file,
    run_path,
    takes_columns,
)
from openjev_core.cli.row_runs import end_with_refusals, open_asker, recorded, settings_for
from openjev_core.cli.setting_flags import OF_THE_SERVER, takes_settings
from openjev_core.cli.terminal import complain


@takes_settings(without=OF_THE_SERVER)
@takes_columns(without=("label",))
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
    escape_formulas: EscapeFormulas = False,
    concurrency: Concurrency = None,
    **flags: Any,
) -> None:
    """Answer every row of a file.

    A row is {"state": ..., "questions": {ID: QUESTION}}, and may have an "id". The same command given again continues
    a run that was stopped; no row is answered twice.
    """
    from openjev_core.datasets.checked_rows import check_questions  # noqa: PLC0415
    from openjev_core.datasets.exports import check_clashes, check_export, export  # noqa: PLC0415
    from openjev_core.datasets.records import answer_record  # noqa: PLC0415
    from openjev_core.datasets.rows import read_rows  # noqa: PLC0415
    from openjev_core.plugins.structuring import QuestionConverter  # noqa: PLC0415

    data = rows_file(data)
    path = run_path(run, data, "batch")
    check_apart(DATA=data, **{"--run": path, "--out": out})
    if out is not None:
        check_export(out)
    columns = columns_from(flags)
    settings = settings_for(url, flags)
    registry = installed_types(settings)
    rows = read_rows(data, columns)
    # A server may have types that are not installed here, and itself refuses questions that are not valid.
    known = None if url is None else frozenset(registry.types)
    shapes = check_questions(rows, QuestionConverter(registry), known=known)
    if out is not None:
        check_clashes(rows, shapes)

    async def answered() -> list[dict[str, Any]]:
        async with open_asker(url, settings, flags, registry, concurrency) as (asker, at_once):
            header = {"command": "batch", **asker.source}
            return await recorded(rows, partial(answer_record, asker), path, header, at_once)

    import asyncio  # noqa: PLC0415 - slow to import

    records = asyncio.run(answered())
    if out is not None:
        export(out, rows, {record["row"]: record for record in records}, escape_formulas=escape_formulas)
    complain(f"{len(records)} rows are in {path}" + (f" and {out}" if out is not None else ""))
    end_with_refusals(records)
