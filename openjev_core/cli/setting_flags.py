"""Settings as flags. Each flag is made from the setting's own field, so none is forgotten or described twice."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import attrs
import typer

from openjev_core.cli.terminal import complain
from openjev_core.settings import LoadedSettings, Settings, load_settings, variable

if TYPE_CHECKING:
    from openjev_core.launch.profiles import Profile

F = TypeVar("F", bound=Callable[..., Any])

PANEL = "Settings (each is an environment variable too, which the flag overrides)"

OF_THE_SERVER = frozenset(
    {
        "host",
        "port",
        "certfile",
        "keyfile",
        "workers",
        "trusted_proxies",
        "max_body_bytes",
        "body_timeout",
        "max_concurrent_requests",
        "queue_timeout",
        "keep_alive",
        "grace_period",
        "log_format",
        "tracing",
        "cors_origins",
        "mcp",
        "debug_prompts",
    }
)
"""Settings of the HTTP side, without a meaning for commands that run no server."""

BEFORE_THE_COMMAND = frozenset({"plugins"})
"""Settings whose flag stands before the command (``--plugin FILE``): a plugin may bring the command."""


def takes_settings(without: Collection[str] = ()) -> Callable[[F], F]:
    """Give a command a flag for every setting. It gets them as keyword arguments, ``None`` where not given.

    Secrets get no flag: a process list shows flags to every user of the machine.

    Args:
        without: Names of settings that the command has no use for.
    """
    left_out = {*without, *BEFORE_THE_COMMAND}
    flags = [
        flag_of(field)
        for field in attrs.fields(Settings)
        if field.name not in left_out and not field.metadata["secret"]
    ]

    def decorate(command: F) -> F:
        signature = inspect.signature(command, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        command.__signature__ = signature.replace(parameters=[*own, *flags])  # type: ignore[attr-defined]  # typer reads it
        return command

    return decorate


def flag_of(field: attrs.Attribute[Any]) -> inspect.Parameter:
    """A setting's flag, as a parameter that typer understands. Values stay text, which the settings parse."""
    name = "--" + field.name.replace("_", "-")
    boolean = field.type in ("bool", "bool | None", bool, bool | None)
    option = typer.Option(
        f"{name}/--no-{name[2:]}" if boolean else name,
        metavar=None if boolean else "TEXT",
        help=f"{field.metadata['meaning']} ({variable(field.name)}; default: {default_text(field.default)})",
        show_default=False,
        rich_help_panel=PANEL,
    )
    kind: Any = bool | None if boolean else str | None
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option]
    )


def default_text(value: Any) -> str:
    """A default as a person would write it."""
    if value is None or value == ():
        return "unset"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def settings_from(flags: Mapping[str, Any], preset: Mapping[str, Any] | None = None) -> LoadedSettings:
    """The settings of this process: flags, environment, preset, defaults. Warnings go to standard error.

    Raises:
        SettingsError: A value is not accepted.
    """
    loaded = load_settings(os.environ, flags=flags, preset=preset)
    for warning in loaded.warnings:
        complain(f"warning: {warning}")
    # A profile says how SGLang is launched. A server that runs already says itself what it serves.
    named = loaded.settings.connect and loaded.origins["profile"] != "default"
    if not loaded.settings.sglang_python and not named:
        return loaded
    from openjev_core.launch.profiles import find_profile  # noqa: PLC0415 - only where SGLang is served from

    of_profile = preset_of(find_profile(loaded.settings.profile), loaded.settings)
    return load_settings(os.environ, flags=flags, preset={**of_profile, **(preset or {})})


def preset_of(profile: Profile, settings: Settings) -> dict[str, Any]:
    """The settings of a profile. Its revision and its names apply to its own model alone."""
    if settings.model not in (None, profile.model):
        return dict(profile.preset)
    named = {"model": profile.model, "revision": profile.revision, "served_model_name": (profile.public_name,)}
    return {**profile.preset, **{name: value for name, value in named.items() if value is not None}}
