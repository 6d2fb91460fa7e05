"""``openjev plugins``: the installed question types and engines, listed; types shown and checked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openjev_core.cli.new_plugin import new_plugin
from openjev_core.cli.setting_flags import settings_from
from openjev_core.cli.terminal import BAD_INPUT, FAILED, complain, console, shown
from openjev_core.errors import StartupError

if TYPE_CHECKING:
    from openjev_core.plugins.registry import PluginEntry, Registry
    from openjev_core.settings import Settings
    from openjev_core.testing.checks import Finding

app = typer.Typer(
    help="The installed question types and engines. `openjev plugins guide` says how to write one.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def installed_types(settings: Settings) -> Registry:
    """The installed question types, with a warning for each plugin that did not load."""
    from openjev_core.plugins.registry import load_registry  # noqa: PLC0415

    registry = load_registry(settings.disable_plugins, settings.plugins).configured(settings)
    for entry in registry.failures:
        complain(f"warning: plugin {entry.name} of {entry.distribution} {entry.version} did not load: {entry.cause}")
    return registry


def enabled_types() -> Registry:
    """The question types that there are, without those of disabled plugins."""
    from openjev_core.plugins.registry import load_registry  # noqa: PLC0415

    settings = settings_from({}).settings
    return load_registry(settings.disable_plugins, settings.plugins).configured(settings)


@app.command("list", short_help="List question types and engines, and what did not load.")
def list_plugins(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List question types and engines: name, distribution, version, status, summary; what did not load, and why."""
    registry = enabled_types()
    for warning in registry.warnings:
        complain(warning)
    rows = [row for entry in registry.entries for row in rows_of(entry)]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    if not rows:
        typer.echo("no plugins are installed; openjev itself declares some (is it installed, or only on sys.path?)")
        return
    kinds = {"question type": Table(), "engine": Table(), "plugin": Table()}
    for kind, table in kinds.items():
        table.box, table.pad_edge = None, False
        for heading in (kind, "distribution", "status", "summary or cause"):
            table.add_column(heading)
    for row in rows:
        styles = {"loaded": "green", "blocked": "yellow"}
        kinds[row["kind"]].add_row(
            Text(shown(row["name"])),
            Text(shown(f"{row['distribution']} {row['version']}")),
            Text(row["status"], style=styles.get(row["status"], "red")),
            Text(shown(row["summary"] or row["cause"] or "")),
        )
    for number, table in enumerate(table for table in kinds.values() if table.row_count):
        console().print(*(("",) if number else ()), table, sep="\n")


def rows_of(entry: PluginEntry) -> list[dict[str, Any]]:
    """One row per question type and engine; one for the whole plugin where it gives neither."""
    shared = {"distribution": entry.distribution, "version": entry.version, "status": entry.status}
    if not entry.types and not entry.engines:
        return [{"name": entry.name, "kind": "plugin", **shared, "summary": None, "cause": entry.cause}]
    types = [{"name": t.name, "kind": "question type", **shared, "summary": t.summary} for t in entry.types]
    engines = [{"name": e.name, "kind": "engine", **shared, "summary": e.summary} for e in entry.engines]
    return [{**row, "cause": None} for row in types + engines]


@app.command("show", short_help="Print a question type's schemas, an example and its prompt.")
def show_plugin(name: Annotated[str, typer.Argument(help="The question type.")]) -> None:
    """Print a question type's schemas, an example with its rendered prompt, and its labels."""
    from openjev_core.plugins.registry import registry_of  # noqa: PLC0415
    from openjev_core.plugins.schemas import components  # noqa: PLC0415
    from openjev_core.plugins.structuring import QuestionConverter  # noqa: PLC0415
    from openjev_core.testing.scripted import rendered_prompts  # noqa: PLC0415

    registry = enabled_types()
    question_type = registry.types.get(name)
    if question_type is None:
        complain(f"no question type {name!r} is installed; installed: {', '.join(registry.types) or 'none'}")
        raise typer.Exit(BAD_INPUT)
    alone = registry_of(question_type)
    schemas = components(alone.types)
    typer.echo(f"{question_type.name}: {question_type.summary}")
    typer.echo(f"from {registry.distribution_of(name)}, contract version {question_type.api}")
    typer.echo(f"labels: {', '.join(question_type.labels) or 'the engine’s own (A, B, ...)'}")
    for role in ("question", "answer"):
        typer.echo(f"\n--- {role} schema ---\n{json.dumps(schemas[f'{name}.{role}'], indent=2, ensure_ascii=False)}")
    for example in question_type.examples[:1]:
        wire = QuestionConverter(alone).wire_question(question_type, example)
        typer.echo(f"\n--- an example ---\n{json.dumps(wire, indent=2, ensure_ascii=False)}")
        typer.echo("\n--- what a model with ChatML as its template reads for it ---")
        typer.echo(rendered_prompts(question_type, example))


@app.command("check", short_help="Hold question types, or one engine, to the contract.")
def check_plugins(
    name: Annotated[
        str | None, typer.Argument(help="A question type, or an engine; all question types when not given.")
    ] = None,
) -> None:
    """Hold installed question types to the plugin contract; exit code 1 when one breaks it.

    An engine is checked when it is named: it is opened, with the settings that OPENJEV_... variables give, and read.
    """
    from openjev_core.testing.checks import findings  # noqa: PLC0415
    from openjev_core.testing.tokenizers import INSTALL, real_tokenizers  # noqa: PLC0415

    registry = enabled_types()
    if name is not None and name in registry.engines:
        _check_engine(registry, name)
        return
    types = [t for t in registry.types.values() if name in (None, t.name)]
    broken = [entry for entry in registry.failures if name in (None, entry.name)]
    if not types and not broken:
        asked = "question types are" if name is None else f"question type or engine {name!r} is"
        installed = [*registry.types, *(() if name is None else registry.engines)]
        lost = "".join(f"; {entry.name} of {entry.distribution} did not load" for entry in registry.failures)
        complain(f"no {asked} installed; installed: {', '.join(installed) or 'none'}{lost}")
        raise typer.Exit(BAD_INPUT)
    failed = bool(broken)
    for entry in broken:
        typer.echo(f"FAILED  {entry.name} ({entry.distribution} {entry.version})\n  {entry.status}: {entry.cause}")
        typer.echo(f"    fix: mend the plugin, or leave it out: OPENJEV_DISABLE_PLUGINS={entry.distribution}")
    with ExitStack() as stack:
        tokenizers = stack.enter_context(real_tokenizers()) if any(t.labels for t in types) else {}
        for question_type in types:
            found = findings(question_type, tokenizers)
            failed = failed or bool(found)
            _print_findings(f"{question_type.name} ({registry.distribution_of(question_type.name)})", found)
            if question_type.labels and not tokenizers:
                typer.echo(f"  labels: not tried, since no real tokenizer is installed; {INSTALL}")
    raise typer.Exit(FAILED if failed else 0)


def _check_engine(registry: Registry, name: str) -> None:
    import asyncio  # noqa: PLC0415 - slow to import

    from openjev_core.testing.checks import ContractBroken  # noqa: PLC0415
    from openjev_core.testing.engine_checks import check_engine  # noqa: PLC0415

    distribution = next(entry.distribution for entry in registry.entries if registry.engines[name] in entry.engines)
    found: Sequence[Finding] = ()
    try:
        asyncio.run(check_engine(registry.engines[name], settings_from({}).settings))
    except ContractBroken as error:
        found = error.findings
    except StartupError as error:
        complain(f"the engine {name} does not open: {error}")
        raise typer.Exit(FAILED) from None
    _print_findings(f"{name} ({distribution})", found)
    raise typer.Exit(FAILED if found else 0)


def _print_findings(what: str, found: Sequence[Finding]) -> None:
    typer.echo(f"{'FAILED' if found else 'ok    '}  {what}")
    for finding in found:
        typer.echo(f"  {finding.rule}: {finding.msg}\n    fix: {finding.fix}")


@app.command(short_help="Print how a question type is written.")
def guide() -> None:
    """Print how a question type is written: the tutorial, the contract's reasons, a reviewer's list."""
    from importlib.resources import files  # noqa: PLC0415 - slow to import

    typer.echo((files("openjev_core.plugins") / "guide.md").read_text("utf-8"), nl=False)


app.command("new", short_help="Write a package for a question type.")(new_plugin)
