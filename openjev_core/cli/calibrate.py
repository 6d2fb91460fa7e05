"""``openjev calibrate``: fit corrections to labelled rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import typer

from openjev_core.cli.plugins import installed_types
from openjev_core.cli.row_flags import (
    Concurrency,
    Data,
    ReportHtml,
    ReportJson,
    RunPath,
    check_apart,
    columns_from,
    rows_file,
    run_path,
    takes_columns,
)
from openjev_core.cli.row_runs import end_with_refusals, made_of, open_here, places, recorded, settings_for
from openjev_core.cli.setting_flags import OF_THE_SERVER, takes_settings
from openjev_core.cli.terminal import complain
from openjev_core.errors import SettingsError

if TYPE_CHECKING:
    from openjev_core.calibration import Calibration
    from openjev_core.datasets.checked_rows import CheckedRows
    from openjev_core.datasets.rows import Row
    from openjev_core.plugins.registry import Registry
    from openjev_core.settings import Settings

NOT_HERE = OF_THE_SERVER | {"calibration", "temperature"}
"""Settings that have no flag here: what is fitted takes the place of the last two."""


@takes_settings(without=NOT_HERE)
@takes_columns()
def calibrate(
    data: Data,
    *,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write the calibration, for OPENJEV_CALIBRATION.")
    ] = Path("calibration.json"),
    run: RunPath = None,
    json_file: ReportJson = None,
    html: ReportHtml = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="TYPE", help="Fit these question types alone. Repeatable.")
    ] = None,
    guarantee: Annotated[
        float | None,
        typer.Option(
            min=0.5,
            max=0.999,
            metavar="SHARE",
            help="Promise that this share of the accepted answers is right: finds each question's threshold on half of "
            "the rows, and fits on the other half.",
        ),
    ] = None,
    guarantee_confidence: Annotated[
        float,
        typer.Option(min=0.5, max=0.999, metavar="SHARE", help="How sure that promise has to be, for each question."),
    ] = 0.9,
    url: Annotated[str | None, typer.Option(hidden=True)] = None,
    concurrency: Concurrency = None,
    **flags: Any,
) -> None:
    """Fit temperatures, and biases of options where they help, to labelled rows on a model in this process.

    Rows are as for `openjev eval`. The file holds for this model, its chat template, the questions' wording and the
    --orders and --prior that it was fitted with; a server refuses to start with it on anything else.
    """
    if url is not None:
        raise SettingsError(
            "--url: calibrate needs the scores behind the answers, order by order, which no server tells; run it "
            "where the model is: without --url, with --connect for an SGLang that is running"
        )
    from openjev_core.datasets.tables import needs_extra  # noqa: PLC0415

    for library in ("numpy", "scipy", "sklearn", "matplotlib"):
        needs_extra(library, "`openjev calibrate`, its fits and plots,")
    from openjev_core.calibration import write_calibration  # noqa: PLC0415
    from openjev_core.cli.reports import print_calibration, show  # noqa: PLC0415

    data = rows_file(data)
    path = run_path(run, data, "scores")
    check_apart(DATA=data, **{"--run": path, "--json": json_file, "--html": html, "--out": out})
    columns = columns_from(flags)
    settings = attrs.evolve(given := settings_for(None, flags), calibration=None, temperature=1.0)
    if (given.calibration, given.temperature) != (settings.calibration, settings.temperature):
        complain("OPENJEV_CALIBRATION and OPENJEV_TEMPERATURE are left aside: what is fitted takes their place")
    registry = installed_types(settings)
    promised = None if guarantee is None else (guarantee, guarantee_confidence)
    rows, checked = _checked(data, columns, registry, only or (), halved=promised is not None)
    made = made_of(data)
    import asyncio  # noqa: PLC0415 - slow to import

    calibration, report, records = asyncio.run(
        _fitted(rows, checked, path, settings, registry, concurrency, only or (), promised)
    )
    report["made"] = made
    write_calibration(calibration, str(out))
    show(report, print_calibration, "calibration", json_file, html)
    complain(f"the calibration is in {out}: OPENJEV_CALIBRATION={out} applies it")
    for line in worse_lines(report):
        complain(line)
    end_with_refusals(records)


def _checked(
    data: Path, columns: Any, registry: Registry, only: Sequence[str], *, halved: bool
) -> tuple[list[Row], CheckedRows]:
    from openjev_core.datasets.calibrations import check_enough, half_for_the_fit, labelled_rows  # noqa: PLC0415
    from openjev_core.datasets.checked_rows import check_rows  # noqa: PLC0415
    from openjev_core.datasets.rows import read_rows  # noqa: PLC0415
    from openjev_core.plugins.structuring import QuestionConverter  # noqa: PLC0415

    rows = read_rows(data, columns)
    checked = check_rows(rows, QuestionConverter(registry), labelled=True)
    labelled = labelled_rows(checked)
    if halved:
        half = half_for_the_fit([row for of_type in labelled.values() for row in of_type])
        labelled = {name: [row for row in of_type if row in half] for name, of_type in labelled.items()}
    check_enough(labelled, only)
    return rows, checked


def worse_lines(report: Mapping[str, Any]) -> list[str]:
    """A warning for each correction that made rows worse which the fit had not seen."""
    return [
        f"warning: the {group['type']} correction made unseen rows worse: their log loss went from "
        f"{loss['before']['value']:.3f} to {loss['after']['value']:.3f}; label more rows, or fit the other types alone "
        "with --only TYPE"
        for group in report["groups"]
        if group["form"] != "none"
        and (loss := group["measures"]["log_loss"])["after"]["value"] > loss["before"]["value"]
    ]


async def _fitted(  # noqa: PLR0917 - what a fit depends on
    rows: Sequence[Row],
    checked: CheckedRows,
    path: Path,
    settings: Settings,
    registry: Registry,
    concurrency: int | None,
    only: Sequence[str],
    promised: tuple[float, float] | None,
) -> tuple[Calibration, dict[str, Any], list[dict[str, Any]]]:
    """The calibration, its report, and the records that it was fitted on."""
    from openjev_core.datasets import calibrations  # noqa: PLC0415
    from openjev_core.datasets.acceptance import acceptance  # noqa: PLC0415
    from openjev_core.datasets.askers import EngineAsker  # noqa: PLC0415
    from openjev_core.datasets.records import ScoreRecorder  # noqa: PLC0415

    async with open_here(settings, registry) as engine:
        at_once = places(concurrency, engine)
        header = {"command": "calibrate", **EngineAsker(engine).source}
        record = ScoreRecorder(engine, checked).record
        records = await recorded(rows, record, path, header, at_once)
        questions = calibrations.labelled_questions(records, checked)
        half = calibrations.half_for_the_fit([question.row for question in questions])
        fitted_on = [question for question in questions if promised is None or question.row in half]
        fits, report = calibrations.calibrate(calibrations.examples_of(fitted_on), only)
        calibration = calibrations.calibration_of(engine, fits, fitted_on)
        if promised is not None:
            others = [question for question in questions if question.row not in half]
            promise = acceptance(others, calibration, engine.converter, settings.confidence, *promised)
            calibration = attrs.evolve(calibration, promise=promise)
    facts = {
        "model": calibration.model,
        "template": calibration.template,
        "orders": calibration.orders,
        "prior": calibration.prior,
        "rows_at_once": at_once,
        "rows": {
            "in_data": len(rows),
            "answered": sum("error" not in record for record in records),
            "fitted_on": len({question.row for question in fitted_on}),
        },
        "promise": None if calibration.promise is None else attrs.asdict(calibration.promise),
    }
    return calibration, {**facts, **calibrations.named(report, calibration)}, records
