"""``openjev calibrate``: fit corrections to labelled rows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import typer

from openjev_core.cli.answering import counting, installed_types, open_here, places, refused_lines, settings_for
from openjev_core.cli.evaluate import show
from openjev_core.cli.failures import FAILED, complain
from openjev_core.cli.row_flags import (
    Concurrency,
    Data,
    IdColumn,
    LabelColumns,
    QuestionsFile,
    RunPath,
    StateColumns,
    check_apart,
    columns_from,
    run_path,
)
from openjev_core.cli.setting_flags import OF_THE_SERVER, takes_settings
from openjev_core.errors import SettingsError

if TYPE_CHECKING:
    from openjev_core.calibration import Calibration
    from openjev_core.evaluating.checking import CheckedRow
    from openjev_core.plugins.registry import Registry
    from openjev_core.settings import Settings

NOT_HERE = OF_THE_SERVER | {"calibration", "temperature"}
"""Settings that what is fitted here takes the place of."""


@takes_settings(without=NOT_HERE)
def calibrate(
    data: Data,
    *,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write the calibration, for OPENJEV_CALIBRATION.")
    ] = Path("calibration.json"),
    run: RunPath = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE|-", help="Write the report as JSON; - prints it instead.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as one HTML page that loads nothing.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="TYPE", help="Fit these question types alone. Repeatable.")
    ] = None,
    url: Annotated[str | None, typer.Option(hidden=True)] = None,
    concurrency: Concurrency = None,
    questions: QuestionsFile = None,
    state_column: StateColumns = None,
    id_column: IdColumn = None,
    label: LabelColumns = None,
    **flags: Any,
) -> None:
    """Fit temperatures, and biases of labels where they help, to labelled rows on a model in this process.

    Rows are as for `openjev eval`. The file holds for this model, its chat template, the questions' wording and the
    --orders and --prior that it was fitted with; a server refuses to start with it on anything else.
    """
    from openjev_core.calibration import write_calibration  # noqa: PLC0415
    from openjev_core.cli.report_tables import print_calibration  # noqa: PLC0415
    from openjev_core.evaluating.extra import needs_extra  # noqa: PLC0415

    if url is not None:
        raise SettingsError(
            "--url: calibrate needs the scores behind the answers, order by order, which no server tells; run it "
            "where the model is: without --url, with --connect for an SGLang that is running"
        )
    for library in ("numpy", "scipy", "sklearn", "matplotlib"):
        needs_extra(library, "`openjev calibrate`, its fits and plots,")
    path = run_path(run, data, "scores")
    check_apart(DATA=data, **{"--run": path, "--json": json_file, "--html": html, "--out": out})
    columns = columns_from(questions=questions, state_column=state_column, id_column=id_column, label=label)
    settings = attrs.evolve(given := settings_for(None, flags), calibration=None, temperature=1.0)
    if (given.calibration, given.temperature) != (settings.calibration, settings.temperature):
        complain("OPENJEV_CALIBRATION and OPENJEV_TEMPERATURE are left aside: what is fitted takes their place")
    registry = installed_types(settings)
    checked = _checked(data, columns, registry, only or ())
    calibration, report, records = asyncio.run(_fitted(checked, path, settings, registry, concurrency, only or ()))
    write_calibration(calibration, str(out))
    show(report, print_calibration, "calibration", json_file, html)
    complain(f"the calibration is in {out}: OPENJEV_CALIBRATION={out} applies it")
    for line in worse_lines(report):
        complain(line)
    if refused := refused_lines(records):
        for line in refused:
            complain(line)
        raise typer.Exit(FAILED)


def _checked(data: Path, columns: Any, registry: Registry, only: Sequence[str]) -> list[CheckedRow]:
    from openjev_core.evaluating.calibrating import check_enough, labelled_rows  # noqa: PLC0415
    from openjev_core.evaluating.checking import check_rows  # noqa: PLC0415
    from openjev_core.evaluating.rows import read_rows  # noqa: PLC0415
    from openjev_core.plugins.structuring import QuestionConverter  # noqa: PLC0415

    checked = check_rows(read_rows(data, columns), QuestionConverter(registry), labelled=True)
    check_enough(labelled_rows(checked), only)
    return checked


def worse_lines(report: Mapping[str, Any]) -> list[str]:
    """What to tell about corrections that did rows no good which the fit had not seen."""
    return [
        f"warning: the {group['type']} correction made unseen rows worse: their log loss went from "
        f"{loss['before']['value']:.3f} to {loss['after']['value']:.3f}; label more rows, or fit the other types alone "
        "with --only TYPE"
        for group in report["groups"]
        if group["form"] != "none"
        and (loss := group["measures"]["log_loss"])["after"]["value"] > loss["before"]["value"]
    ]


async def _fitted(  # noqa: PLR0917 - what a fit depends on
    checked: Sequence[CheckedRow],
    path: Path,
    settings: Settings,
    registry: Registry,
    concurrency: int | None,
    only: Sequence[str],
) -> tuple[Calibration, dict[str, Any], list[dict[str, Any]]]:
    """The calibration, its report, and the records that it was fitted on."""
    from openjev_core.evaluating.asking import EngineAsker  # noqa: PLC0415
    from openjev_core.evaluating.calibrating import calibrate as fitted  # noqa: PLC0415
    from openjev_core.evaluating.calibrating import calibration_of, labelled_scores  # noqa: PLC0415
    from openjev_core.evaluating.run_file import open_run  # noqa: PLC0415
    from openjev_core.evaluating.running import run_rows  # noqa: PLC0415
    from openjev_core.evaluating.scoring_rows import ScoreRecorder  # noqa: PLC0415

    # What an adaptive evaluation leaves unread is what a fit should see.
    settings = attrs.evolve(settings, orders="full") if settings.orders == "adaptive" else settings
    async with open_here(settings, registry) as engine:
        header = {"command": "calibrate", **EngineAsker(engine).source}
        rows = [one.row for one in checked]
        with open_run(path, header, rows) as run, counting(len(run.done), len(rows)) as count:
            await run_rows(
                checked,
                lambda one: one.row.number,
                ScoreRecorder(engine).record,
                run,
                concurrency=places(concurrency, engine),
                answered=count,
            )
            records = [run.done[row.number] for row in rows]
        corrections, report = fitted(labelled_scores(records), only)
        calibration = calibration_of(engine, corrections)
    facts = {
        "model": calibration.model,
        "orders": calibration.orders,
        "prior": calibration.prior,
        "rows": {"in_data": len(rows), "answered": sum("error" not in record for record in records)},
    }
    return calibration, {**facts, **report}, records
