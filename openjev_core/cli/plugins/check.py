"""``openjev plugins check``: the contract's checks on what is installed."""

from __future__ import annotations

from typing import Annotated

import typer

from openjev_core.cli.failures import BAD_INPUT, FAILED, complain


def check_plugins(
    name: Annotated[str | None, typer.Argument(help="A question type; all when not given.")] = None,
) -> None:
    """Hold installed question types to the plugin contract; exit code 1 when one breaks it."""
    from openjev_core.cli.setting_flags import settings_from  # noqa: PLC0415
    from openjev_core.plugins.registry import load_registry  # noqa: PLC0415
    from openjev_core.testing.checks import findings  # noqa: PLC0415

    registry = load_registry(settings_from({}).settings.disable_plugins)
    types = [t for t in registry.types.values() if name in (None, t.name)]
    broken = [entry for entry in registry.failures if name in (None, entry.name)]
    if not types and not broken:
        asked = "question types are" if name is None else f"question type {name!r} is"
        complain(f"no {asked} installed; installed: {', '.join(registry.types) or 'none'}")
        raise typer.Exit(BAD_INPUT)
    failed = bool(broken)
    for entry in broken:
        typer.echo(f"FAILED  {entry.name} ({entry.distribution} {entry.version})\n  {entry.status}: {entry.cause}")
    for question_type in types:
        found = findings(question_type)
        failed = failed or bool(found)
        verdict = "FAILED" if found else "ok    "
        typer.echo(f"{verdict}  {question_type.name} ({registry.distribution_of(question_type.name)})")
        for finding in found:
            typer.echo(f"  {finding.rule}: {finding.msg}\n    fix: {finding.fix}")
    raise typer.Exit(FAILED if failed else 0)
