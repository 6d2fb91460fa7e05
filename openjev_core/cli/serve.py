"""``openjev serve``: the HTTP API."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openjev_core.cli.setting_flags import settings_from, takes_settings
from openjev_core.errors import SettingsError, StartupError

if TYPE_CHECKING:
    from openjev_core.engine.engine import Engine
    from openjev_core.plugins.registry import Registry
    from openjev_core.settings import Settings

logger = logging.getLogger("openjev.serve")

DEMO_NOTE = "the demo model answers: it shows that everything works and is no classifier; --model takes a better one"


class Compat(StrEnum):
    """The server whose defaults are taken where nothing else is set."""

    jev = "jev"


PRESETS: dict[Compat, dict[str, Any]] = {Compat.jev: {"max_answers": 255, "confidence": "jev"}}


@takes_settings()
def serve(
    sglang_flags: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- SGLANG FLAGS]", help="With --sglang-python: flags for SGLang, after a --."),
    ] = None,
    compat: Annotated[
        Compat | None,
        typer.Option(help="Defaults of the System One reference: 255 options in a question, its confidence formula."),
    ] = None,
    skip_failed_plugins: Annotated[
        bool, typer.Option("--skip-failed-plugins", help="Serve without the plugins that do not load.")
    ] = False,
    **flags: Any,
) -> None:
    """Serve the API until it is stopped: by default the demo model, on http://127.0.0.1:8000.

    Keys are taken from OPENJEV_API_KEY, never from a flag: other users of the machine can read flags.
    """
    settings = settings_from(flags, PRESETS[compat] if compat else None).settings
    if sglang_flags and not settings.sglang_python:
        found = " ".join(sglang_flags)
        raise SettingsError(f"expected flags for SGLang with --sglang-python only, found {found!r} without it")
    if settings.connect and settings.sglang_python:
        raise SettingsError("--connect and --sglang-python: expected one of them, found both")
    prepare(settings)
    registry = registry_to_serve(settings, skip_failed=skip_failed_plugins)
    if settings.sglang_python:
        from openjev_core.cli.launching import run_launched  # noqa: PLC0415

        run_launched(settings, sglang_flags or (), registry=registry, progress=progress, announce=announce)
        return
    from openjev_core.api.serving.process import run_server  # noqa: PLC0415

    run_server(settings, registry=registry, progress=progress, announce=announce, prepare=prepare)


def prepare(settings: Settings) -> None:
    """Set up logging as the settings say. Called in this process and in each worker."""
    from openjev_core.cli.logs import write_logs  # noqa: PLC0415

    write_logs(settings.log_format)


def progress(line: str) -> None:
    """Log what the start waits for or has found."""
    logger.info("%s", line)


def registry_to_serve(settings: Settings, *, skip_failed: bool) -> Registry:
    """The installed question types.

    Raises:
        StartupError: A plugin did not load, and ``skip_failed`` is false.
    """
    from openjev_core.plugins.registry import load_registry  # noqa: PLC0415

    registry = load_registry(settings.disable_plugins, settings.plugins)
    for warning in registry.warnings:
        logger.warning("%s", warning)
    causes = [f"{e.name} of {e.distribution} {e.version}: {e.cause}" for e in registry.failures]
    if causes and not skip_failed:
        raise StartupError(
            f"plugins that did not load: {'; '.join(causes)}. Mend or uninstall them, disable them with "
            "--disable-plugins, or start without them with --skip-failed-plugins"
        )
    for cause in causes:
        logger.warning("serving without the plugin %s", cause)
    return registry


def announce(engine: Engine, url: str) -> None:
    """Log what is served, where, and within which limits."""
    for line in announcement(engine, url):
        logger.info("%s", line)


def announcement(engine: Engine, url: str) -> list[str]:
    """The lines of :func:`announce`."""
    limits = engine.limits
    types = ", ".join(f"{name} ({engine.registry.distribution_of(name)})" for name in engine.registry.types)
    numbers = (
        f"{limits.max_questions} questions, {limits.max_answers_per_question} options each, "
        f"{limits.max_input_tokens} tokens in a branch, {limits.max_total_input_tokens} in a request, "
        f"{limits.max_body_bytes} bytes of body, {limits.max_concurrent_requests} evaluations at once"
    )
    lines = [
        f"model {engine.model.public_name} on {engine.model.engine}",
        f"question types: {types}",
        f"limits: {numbers}",
        f"keys: {'a Bearer key is needed' if engine.settings.api_key else 'none, every request is taken'}",
        f"listening on {url}; POST {url}/v1/systemone, reference at {url}/docs; Ctrl-C stops",
    ]
    if engine.model.demo:
        lines.insert(1, DEMO_NOTE)
    return lines
