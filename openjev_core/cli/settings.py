"""``openjev settings``: the settings that this process would run with."""

from __future__ import annotations

import json
from typing import Annotated, Any

import attrs
import typer

from openjev_core.cli.setting_flags import default_text, settings_from
from openjev_core.settings import LoadedSettings, Settings, variable

MASK = "********"


def settings(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print every setting: its name, its value, where the value comes from, its meaning. Secrets are masked."""
    rows = setting_rows(settings_from({}))
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    from rich.table import Column, Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from openjev_core.cli.terminal import console, shown  # noqa: PLC0415

    table = Table(Column("name", no_wrap=True), "value", "origin", "meaning", box=None, pad_edge=False)
    for row in rows:
        value = row["value"] if isinstance(row["value"], str) else default_text(value_of(row["value"]))
        table.add_row(row["name"], Text(shown(value)), row["origin"], Text(row["meaning"]))
    console().print(table)


def setting_rows(loaded: LoadedSettings) -> list[dict[str, Any]]:
    """One row per setting. A secret's value is a mask, which shows neither its length nor how many keys there are."""
    return [
        {
            "name": variable(field.name),
            "value": MASK if field.metadata["secret"] and value else value,
            "origin": loaded.origins[field.name],
            "meaning": field.metadata["meaning"],
        }
        for field in attrs.fields(Settings)
        for value in [getattr(loaded.settings, field.name)]
    ]


def value_of(value: Any) -> Any:
    """A list as the environment writes it."""
    return ",".join(value) if isinstance(value, tuple) and value else value
