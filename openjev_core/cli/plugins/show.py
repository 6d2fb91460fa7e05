"""``openjev plugins show``: one question type from all sides."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from openjev_core.cli.failures import BAD_INPUT, complain


def show_plugin(name: Annotated[str, typer.Argument(help="The question type.")]) -> None:
    """Print a question type's schemas, an example with its rendered prompt, and its labels."""
    from openjev_core.cli.setting_flags import settings_from  # noqa: PLC0415
    from openjev_core.plugins.registry import load_registry, registry_of  # noqa: PLC0415
    from openjev_core.plugins.schema import components  # noqa: PLC0415
    from openjev_core.plugins.structuring import QuestionConverter  # noqa: PLC0415
    from openjev_core.testing.prompts import rendered_prompts  # noqa: PLC0415

    registry = load_registry(settings_from({}).settings.disable_plugins)
    question_type = registry.types.get(name)
    if question_type is None:
        complain(f"no question type {name!r} is installed; installed: {', '.join(registry.types) or 'none'}")
        raise typer.Exit(BAD_INPUT)
    alone = registry_of(question_type)
    schemas = components(alone)
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
