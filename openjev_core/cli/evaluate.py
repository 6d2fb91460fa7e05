"""``openjev eval``: how good the answers are on labelled rows, and how two runs compare."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openjev_core.cli.answering import counting, installed_types, open_asker, refused_lines, settings_for
from openjev_core.cli.failures import FAILED, complain
from openjev_core.cli.row_flags import (
    Concurrency,
    IdColumn,
    LabelColumns,
    QuestionsFile,
    RunPath,
    StateColumns,
    Url,
    check_apart,
    columns_from,
    run_path,
)
from openjev_core.cli.setting_flags import OF_THE_SERVER, takes_settings
from openjev_core.errors import SettingsError

if TYPE_CHECKING:
    from openjev_core.evaluating.checking import CheckedRow
    from openjev_core.plugins.registry import Registry
    from openjev_core.plugins.structuring import QuestionConverter
    from openjev_core.settings import Settings

TARGETS = (0.9, 0.95)


@takes_settings(without=OF_THE_SERVER)
def evaluate(
    data: Annotated[
        Path | None, typer.Argument(metavar="[DATA]", help="Labelled rows as .jsonl, .csv, .tsv or .parquet.")
    ] = None,
    *,
    url: Url = None,
    run: RunPath = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE|-", help="Write the report as JSON; - prints it instead.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as one HTML page that loads nothing.")
    ] = None,
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
    concurrency: Concurrency = None,
    questions: QuestionsFile = None,
    state_column: StateColumns = None,
    id_column: IdColumn = None,
    label: LabelColumns = None,
    **flags: Any,
) -> None:
    """Answer labelled rows and report how good, how calibrated and how stable the answers are.

    A row is {"state": ..., "questions": {ID: QUESTION}, "labels": {ID: LABEL}}, and may have an "id". A label is what
    a certain answer would be: true or false, an option's name, a level's number. A run that was stopped goes on where
    it ended when the same command is given again.
    """
    from openjev_core.evaluating.extra import needs_extra  # noqa: PLC0415

    for library in ("numpy", "scipy", "sklearn", "matplotlib"):
        needs_extra(library, "`openjev eval`, its measures and plots,")
    if compare is not None:
        if data is not None:
            raise SettingsError("--compare takes the files of two runs and no DATA")
        _compare(*compare, json_file, html)
        return
    if data is None:
        raise SettingsError("DATA is missing: a file of labelled rows, or --compare A B with the files of two runs")
    path = run_path(run, data, "eval")
    check_apart(DATA=data, **{"--run": path, "--json": json_file, "--html": html, "--out": out})
    columns = columns_from(questions=questions, state_column=state_column, id_column=id_column, label=label)
    settings = settings_for(url, flags)
    registry = installed_types(settings)
    checked, converter = _checked(data, columns, registry, out)
    header, records = asyncio.run(
        _answered(
            checked,
            converter,
            path,
            url=url,
            settings=settings,
            flags=flags,
            registry=registry,
            concurrency=concurrency,
            reorder=reorder,
            seed=seed,
        )
    )
    _report(header, records, checked, target_accuracy or TARGETS, json_file=json_file, html=html, out=out)
    complain(f"{len(records)} rows are in {path}" + (f" and {out}" if out is not None else ""))
    if html is not None:
        complain(f"the report is in {html}")
    if refused := refused_lines(records):
        for line in refused:
            complain(line)
        raise typer.Exit(FAILED)


def _checked(
    data: Path, columns: Any, registry: Registry, out: Path | None
) -> tuple[list[CheckedRow], QuestionConverter]:
    from openjev_core.evaluating.checking import check_rows  # noqa: PLC0415
    from openjev_core.evaluating.exporting import check_export  # noqa: PLC0415
    from openjev_core.evaluating.rows import read_rows  # noqa: PLC0415
    from openjev_core.plugins.structuring import QuestionConverter  # noqa: PLC0415

    if out is not None:
        check_export(out)
    converter = QuestionConverter(registry)
    return check_rows(read_rows(data, columns), converter, labelled=True), converter


async def _answered(
    checked: Sequence[CheckedRow],
    converter: QuestionConverter,
    path: Path,
    *,
    url: str | None,
    settings: Settings,
    flags: Mapping[str, Any],
    registry: Registry,
    concurrency: int | None,
    reorder: bool,
    seed: int,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The run's header and its records, in row order."""
    from openjev_core.evaluating.recording import EvaluationRecorder  # noqa: PLC0415
    from openjev_core.evaluating.run_file import open_run  # noqa: PLC0415
    from openjev_core.evaluating.running import run_rows  # noqa: PLC0415

    async with open_asker(url, settings, flags, registry, concurrency) as (asker, at_once):
        header = {"command": "eval", **asker.source, "reorder": reorder, "seed": seed}
        recorder = EvaluationRecorder(asker, converter, reorder=reorder, seed=seed)
        rows = [one.row for one in checked]
        with open_run(path, header, rows) as run, counting(len(run.done), len(rows)) as count:
            await run_rows(
                checked, lambda one: one.row.number, recorder.record, run, concurrency=at_once, answered=count
            )
            return header, [run.done[row.number] for row in rows]


def _report(
    header: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
    checked: Sequence[CheckedRow],
    targets: Sequence[float],
    *,
    json_file: Path | None,
    html: Path | None,
    out: Path | None,
) -> None:
    from openjev_core.cli.report_tables import print_evaluation  # noqa: PLC0415
    from openjev_core.evaluating.exporting import export  # noqa: PLC0415
    from openjev_core.evaluating.report import report_of  # noqa: PLC0415

    report = report_of(header, records, len(checked), targets)
    show(report, print_evaluation, "evaluation", json_file, html)
    if out is not None:
        export(out, [one.row for one in checked], {record["row"]: record for record in records})


def _compare(before: Path, after: Path, json_file: Path | None, html: Path | None) -> None:
    from openjev_core.cli.report_tables import print_comparison  # noqa: PLC0415
    from openjev_core.evaluating.comparing import compare_runs  # noqa: PLC0415

    check_apart(**{"the first run": before, "the second run": after, "--json": json_file, "--html": html})
    show(compare_runs(before, after), print_comparison, "comparison", json_file, html)


def show(
    report: Mapping[str, Any], print_tables: Any, template: str, json_file: Path | None, html: Path | None
) -> None:
    """Give a report to whoever asked: tables, unless JSON takes their place; JSON; a page."""
    from openjev_core.evaluating.page import page  # noqa: PLC0415
    from openjev_core.evaluating.places import write_text  # noqa: PLC0415

    if json_file is not None and str(json_file) == "-":
        typer.echo(json.dumps(report, indent=2))
    else:
        print_tables(report)
        if json_file is not None:
            write_text(json_file, json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    if html is not None:
        write_text(html, page(template, report))
