"""``openjev batch-ray``: answers for files of rows, on a Ray cluster."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from openjev_core.cli.row_flags import Url, columns_from, takes_columns
from openjev_core.cli.row_runs import CONCURRENCY, settings_for
from openjev_core.cli.setting_flags import OF_THE_SERVER, takes_settings
from openjev_core.cli.terminal import FAILED, complain
from openjev_core.errors import SettingsError


@takes_settings(without=OF_THE_SERVER)
@takes_columns(without=("label",))
def batch_ray(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="Rows as .jsonl, .csv, .tsv or .parquet: a file or a quoted pattern such as 'rows/*.jsonl', local, "
            "s3:// or gs://.",
        ),
    ],
    *,
    out: Annotated[
        str,
        typer.Option(metavar="FOLDER", help="Where the partitions are written: shared by all nodes, or s3://, gs://."),
    ],
    ray: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="The cluster: HOST:PORT, ray://HOST:PORT, or auto on one of its nodes."),
    ] = "auto",
    url: Url = None,
    partitions: Annotated[
        int, typer.Option(min=1, max=99_999, help="Files of the result, the units of a resumed run.")
    ] = 64,
    actors: Annotated[
        str,
        typer.Option(metavar="LEAST:MOST", help="How many actors answer; more are added up to MOST while rows wait."),
    ] = "1:2",
    cpus: Annotated[float, typer.Option(min=0, help="CPUs that an actor reserves.")] = 1,
    gpus: Annotated[float, typer.Option(min=0, help="GPUs that an actor reserves.")] = 0,
    concurrency: Annotated[int, typer.Option(min=1, help="States that an actor asks about at once.")] = CONCURRENCY,
    **flags: Any,
) -> None:
    """Answer every row of many files on a Ray cluster.

    Rows and columns are those of `openjev batch`. Rows that share a state are answered one after another by one actor.
    The same command given again continues a run that was stopped: finished partitions are kept.
    """
    from openjev_core.datasets.ray_partitions import Job  # noqa: PLC0415
    from openjev_core.datasets.ray_runs import Pool, open_folder, place, run_on_ray  # noqa: PLC0415

    least, most = _bounds(actors)
    columns = columns_from(flags)
    settings = settings_for(url, flags)
    filesystem, folder = place(out)
    job = Job(
        folder=folder,
        filesystem=filesystem,
        columns=columns,
        settings=settings,
        url=url,
        # As with `openjev batch`, a server is sent what a flag says; the environment variables are its own settings.
        orders=None if flags.get("orders") is None else settings.orders,
        model=flags.get("model"),
        concurrency=concurrency,
        partitions=partitions,
    )
    header = {"openjev_ray_run": 1, "data": data, "partitions": partitions, "url": url, **_said(flags, columns)}
    open_folder(job, header)
    pool = Pool(address=ray, least=least, most=most, cpus=cpus, gpus=gpus)
    lines = run_on_ray(data, job, pool, complain)
    refused = sum(int(line["refused"]) for line in lines)
    kept = sum(bool(line["kept"]) for line in lines)
    rows = sum(int(line["rows"]) for line in lines)
    complain(f"{rows} rows in {len(lines)} partitions are in {out}; {kept} partitions were there before")
    if refused:
        complain(f"{refused} rows were refused; the column error says why")
        raise typer.Exit(FAILED)


def _said(flags: dict[str, Any], columns: Any) -> dict[str, Any]:
    """What decides about the answers, as JSON."""
    questions, state = columns.questions, list(columns.state)
    given = {name: value for name, value in flags.items() if value is not None}
    return {"questions": questions, "state": state, "id": columns.id, "settings": given}


def _bounds(actors: str) -> tuple[int, int]:
    least, _, most = actors.partition(":")
    try:
        bounds = int(least), int(most or least)
    except ValueError:
        bounds = 0, 0
    if not 1 <= bounds[0] <= bounds[1]:
        raise SettingsError(f"--actors {actors}: expected LEAST:MOST, such as 1:8, or one number")
    return bounds
