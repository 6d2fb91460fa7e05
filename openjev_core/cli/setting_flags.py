"""Settings as flags. Each flag is made from the setting's own field, so none is forgotten or described twice."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import attrs
import typer

from openjev_core.cli.help import FOLDED
from openjev_core.cli.terminal import complain
from openjev_core.own_settings import Configured, own_fields
from openjev_core.settings import LoadedSettings, Settings, load_settings, setting_fields, variable

if TYPE_CHECKING:
    from openjev_core.launch.profiles import Profile
    from openjev_core.plugins.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])

PANEL = "Settings (each is an environment variable too, which the flag overrides)"

OFTEN_SET = frozenset(
    {"model", "engine", "connect", "sglang_python", "host", "port", "workers", "mcp", "orders", "prior", "calibration"}
)
"""Settings that ``--help`` describes. It names the others, which ``openjev settings`` describes."""

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
        flag_of(field) for field in setting_fields() if field.name not in left_out and not field.metadata["secret"]
    ]

    def decorate(command: F) -> F:
        signature = inspect.signature(command, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        command.__signature__ = signature.replace(parameters=[*own, *flags])  # type: ignore[attr-defined]  # typer reads it
        return command

    return decorate


def flag_of(field: attrs.Attribute[Any], name: str | None = None, panel: str | None = None) -> inspect.Parameter:
    """A setting's flag, as a parameter that typer understands. Values stay text, which the settings parse.

    Args:
        field: The setting's field.
        name: The setting's name, where it is not the field's.
        panel: Where ``--help`` lists it, where that does not follow from the name.
    """
    name = name or field.name
    boolean = is_boolean(field)
    option = typer.Option(
        declaration(name, boolean=boolean),
        metavar=None if boolean else "TEXT",
        help=meaning_of(name, field),
        show_default=False,
        rich_help_panel=panel or (PANEL if name in OFTEN_SET else FOLDED),
    )
    kind: Any = bool | None if boolean else str | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option])


def is_boolean(field: attrs.Attribute[Any]) -> bool:
    """Whether a setting is on or off."""
    return field.type in ("bool", "bool | None", bool, bool | None)


def declaration(name: str, *, boolean: bool) -> str:
    """How a setting's flag is written."""
    flag = name.replace("_", "-")
    return f"--{flag}/--no-{flag}" if boolean else f"--{flag}"


def meaning_of(name: str, field: attrs.Attribute[Any]) -> str:
    """What a setting's flag says in ``--help``."""
    return f"{field.metadata['meaning']} ({variable(name)}; default: {default_text(field.default)})"


def with_own_flags(command: F, registry: Registry) -> F:
    """A command that has flags for engines' and question types' own settings too; the same one where they have none."""
    signature = inspect.signature(command, eval_str=True)
    flags = [
        flag_of(field, name, f"Settings of {one.name}")
        for one in configured_by(registry)
        for name, field in own_fields(one).items()
        if name not in signature.parameters and not field.metadata["secret"]
    ]
    if not flags:
        return command

    @functools.wraps(command)
    def flagged(**values: Any) -> None:
        command(**values)

    flagged.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *flags])  # type: ignore[attr-defined]  # typer reads it
    return cast("F", flagged)


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
    own: Collection[str] = ()
    loaded = load_settings(os.environ, flags=flags, preset=preset)
    if loaded.warnings or not flags.keys() <= loaded.origins.keys():
        own = [name for one in configured_by(enabled_plugins(loaded.settings)) for name in own_fields(one)]
        loaded = load_settings(os.environ, flags=flags, preset=preset, own=own)
    for warning in loaded.warnings:
        complain(f"warning: {warning}")
    # A profile says how SGLang is launched. A server that runs already says itself what it serves.
    named = loaded.settings.connect and loaded.origins["profile"] != "default"
    if not loaded.settings.sglang_python and not named:
        return loaded
    from openjev_core.launch.profiles import find_profile  # noqa: PLC0415 - only where SGLang is served from

    of_profile = preset_of(find_profile(loaded.settings.profile), loaded.settings)
    return load_settings(os.environ, flags=flags, preset={**of_profile, **(preset or {})}, own=own)


def enabled_plugins(settings: Settings) -> Registry:
    """The engines and question types that there are, without those of disabled plugins."""
    from openjev_core.plugins.registry import load_registry  # noqa: PLC0415 - it loads every plugin

    return load_registry(settings.disable_plugins, settings.plugins)


def configured_by(registry: Registry) -> list[Configured]:
    """What has settings of its own: engines, then question types."""
    return [*registry.engines.values(), *registry.types.values()]


def preset_of(profile: Profile, settings: Settings) -> dict[str, Any]:
    """The settings of a profile. Its revision and its names apply to its own model alone."""
    if settings.model not in (None, profile.model):
        return dict(profile.preset)
    named = {"model": profile.model, "revision": profile.revision, "served_model_name": (profile.public_name,)}
    return {**profile.preset, **{name: value for name, value in named.items() if value is not None}}
