"""``openjev schema``: the OpenAPI document."""

from __future__ import annotations

import json

import typer


def schema() -> None:
    """Print the API as an OpenAPI document, with the installed question types in it. Needs no model."""
    from openjev_core.api.openapi import openapi_document  # noqa: PLC0415
    from openjev_core.cli.setting_flags import settings_from  # noqa: PLC0415
    from openjev_core.plugins.registry import load_registry  # noqa: PLC0415

    registry = load_registry(settings_from({}).settings.disable_plugins)
    typer.echo(json.dumps(openapi_document(registry), indent=2))
