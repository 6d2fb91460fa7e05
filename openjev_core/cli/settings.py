"""``openjev settings``: the settings that this process would run with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from openjev_core.cli.setting_flags import configured_by, default_text, enabled_plugins, settings_from
from openjev_core.own_settings import Configured, own_fields, own_settings
from openjev_core.settings import LoadedSettings, setting_fields, variable

MASK = "********"


def settings(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print every setting: its name, its value, where the value comes from, its meaning. Secrets are masked."""
    loaded = settings_from({})
    rows = setting_rows(loaded, configured_by(enabled_plugins(loaded.settings)))
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


def setting_rows(loaded: LoadedSettings, plugged: Sequence[Configured]) -> list[dict[str, Any]]:
    """One row per setting, those of engines and question types last.

    A secret's value is a mask, which shows neither its length nor how many keys there are.

    Raises:
        SettingsError: A value of an engine's or type's own is not accepted.
    """
    values = [(field.name, field, getattr(loaded.settings, field.name)) for field in setting_fields()]
    for one in plugged:
        own = own_settings(one, loaded.settings.own)
        values.extend((name, field, getattr(own, field.name)) for name, field in own_fields(one).items())
    return [
        {
            "name": variable(name),
            "value": MASK if field.metadata["secret"] and value else value,
            "origin": loaded.origins.get(name, "default"),
            "meaning": field.metadata["meaning"],
        }
        for name, field, value in values
    ]


def value_of(value: Any) -> Any:
    """A list as the environment writes it."""
    return ",".join(value) if isinstance(value, tuple) and value else value
