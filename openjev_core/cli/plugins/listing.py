"""``openjev plugins list``: every plugin and what became of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from openjev_core.plugins.registry import PluginEntry


def list_plugins(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List question types: name, distribution and version, status, summary; what did not load, with the cause."""
    from openjev_core.cli.failures import complain  # noqa: PLC0415
    from openjev_core.cli.setting_flags import settings_from  # noqa: PLC0415
    from openjev_core.plugins.registry import load_registry  # noqa: PLC0415

    registry = load_registry(settings_from({}).settings.disable_plugins)
    for warning in registry.warnings:
        complain(warning)
    rows = [row for entry in registry.entries for row in rows_of(entry)]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from openjev_core.cli.terminal import console, shown  # noqa: PLC0415

    if not rows:
        typer.echo("no plugins are installed; openjev itself declares three (is it installed, or only on sys.path?)")
        return
    table = Table("name", "distribution", "status", "summary or cause", box=None, pad_edge=False)
    for row in rows:
        styles = {"loaded": "green", "blocked": "yellow"}
        table.add_row(
            Text(shown(row["name"])),
            Text(shown(f"{row['distribution']} {row['version']}")),
            Text(row["status"], style=styles.get(row["status"], "red")),
            Text(shown(row["summary"] or row["cause"] or "")),
        )
    console().print(table)


def rows_of(entry: PluginEntry) -> list[dict[str, Any]]:
    """One row per question type; one for the whole plugin where it gives none."""
    shared = {"distribution": entry.distribution, "version": entry.version, "status": entry.status}
    if not entry.types:
        return [{"name": entry.name, **shared, "summary": None, "cause": entry.cause}]
    return [{"name": t.name, **shared, "summary": t.summary, "cause": None} for t in entry.types]
