"""``openjev eval``: how good the answers are on labelled rows, and how two runs compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from openjev_core.cli.plugins import installed_types
from openjev_core.cli.row_flags import (
    Concurrency,
    EscapeFormulas,
    ReportHtml,
    ReportJson,
    RunPath,
    Url,
    check_apart,
    columns_from,
    rows_file,
    run_path,
    takes_columns,
)
from openjev_core.cli.row_runs import end_with_refusals, made_of, open_asker, recorded, settings_for
from openjev_core.cli.setting_flags import OF_THE_SERVER, takes_settings
from openjev_core.cli.terminal import complain
from openjev_core.errors import SettingsError

TARGETS = (0.9, 0.95)


@takes_settings(without=OF_THE_SERVER)
@takes_columns()
def evaluate(
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA|-]",
            help="Labelled rows as .jsonl, .csv, .tsv or .parquet; - for JSONL from standard input.",
        ),
    ] = None,
    *,
    url: Url = None,
    run: RunPath = None,
    json_file: ReportJson = None,
    html: ReportHtml = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write rows with their answers as .csv, .tsv, .parquet or .jsonl."),
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A B", help="Compare two finished runs instead: their --run files.", show_default=False),
    ] = None,
    reorder: Annotated[
        bool,
        typer.Option(
            "--reorder/--no-reorder",
            help="Ask again with the options reversed and shuffled, to tell how often that changes an answer.",
        ),
    ] = True,
    seed: Annotated[int, typer.Option(help="Chooses the shuffled orders.")] = 0,
    target_accuracy: Annotated[
        list[float] | None,
        typer.Option(
            min=0, max=1, help="Suggest a threshold for it. Repeatable (default: 0.9 and 0.95).", show_default=False
        ),
    ] = None,
    escape_formulas: EscapeFormulas = False,
    concurrency: Concurrency = None,
    **flags: Any,
) -> None:
    """Answer labelled rows and report how good, how calibrated and how stable the answers are.

    A row is {"state": ..., "questions": {ID: QUESTION}, "labels": {ID: LABEL}}, and may have an "id". A label is what
    a certain answer would be: true or false, an option's name, a level's number. A run that was stopped goes on where
    it ended when the same command is given again.
    """
    from openjev_core.datasets.tables import needs_extra  # noqa: PLC0415

    for library in ("numpy", "scipy", "sklearn", "matplotlib"):
        needs_extra(library, "`openjev eval`, its measures and plots,")
    from openjev_core.cli.reports import print_comparison, print_evaluation, show  # noqa: PLC0415
    from openjev_core.datasets.checked_rows import check_rows  # noqa: PLC0415
    from openjev_core.datasets.comparing import compare_runs  # noqa: PLC0415
    from openjev_core.datasets.exports import check_clashes, check_export, export  # noqa: PLC0415
    from openjev_core.datasets.records import EvaluationRecorder  # noqa: PLC0415
    from openjev_core.datasets.reports import report_of  # noqa: PLC0415
    from openjev_core.datasets.rows import read_rows  # noqa: PLC0415
    from openjev_core.plugins.structuring import QuestionConverter  # noqa: PLC0415

    if compare is not None:
        if data is not None:
            raise SettingsError("--compare takes the files of two runs and no DATA")
        check_apart(**{"the first run": compare[0], "the second run": compare[1], "--json": json_file, "--html": html})
        show(compare_runs(*compare), print_comparison, "comparison", json_file, html)
        return
    if data is None:
        raise SettingsError("DATA is missing: a file of labelled rows, or --compare A B with the files of two runs")
    data = rows_file(data)
    path = run_path(run, data, "eval")
    check_apart(DATA=data, **{"--run": path, "--json": json_file, "--html": html, "--out": out})
    if out is not None:
        check_export(out)
    columns = columns_from(flags)
    settings = settings_for(url, flags)
    registry = installed_types(settings)
    converter, rows = QuestionConverter(registry), read_rows(data, columns)
    checked = check_rows(rows, converter, labelled=True)
    if out is not None:
        check_clashes(rows, {number: {name: q.shape for name, q in of.items()} for number, of in checked.items()})

    async def answered() -> tuple[dict[str, Any], list[dict[str, Any]], int]:
        async with open_asker(url, settings, flags, registry, concurrency) as (asker, at_once):
            ids = all(row.named for row in rows)
            header = {"command": "eval", **asker.source, "ids": ids, "reorder": reorder, "seed": seed}
            recorder = EvaluationRecorder(asker, converter, checked, reorder=reorder, seed=seed)
            found = await recorded(rows, recorder.record, path, header, at_once)
            accepts = any("x_accept" in answer for one in found for answer in one.get("answers", {}).values())
            return {**header, "promise": await asker.promise() if accepts else None}, found, at_once

    import asyncio  # noqa: PLC0415 - slow to import

    header, records, at_once = asyncio.run(answered())
    made = {**made_of(data), "rows at once": at_once}
    report = report_of(header, records, rows, target_accuracy or TARGETS, made)
    show(report, print_evaluation, "evaluation", json_file, html)
    if out is not None:
        export(out, rows, {record["row"]: record for record in records}, escape_formulas=escape_formulas)
    complain(f"{len(records)} rows are in {path}" + (f" and {out}" if out is not None else ""))
    if html is not None:
        complain(f"the report is in {html}")
    end_with_refusals(records)
