"""Commands that plugins add to ``openjev``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from openjev_core.plugins.hookspecs import OWN_COMMANDS
from openjev_core.question import NAME_PATTERN


def checked_commands(returned: Iterable[object]) -> dict[str, Callable[..., None]]:
    """The commands of one plugin: each is built once, so that one that cannot be is found when the plugin is loaded.

    Args:
        returned: Mappings of name to function, as a plugin's hooks return them.

    Raises:
        TypeError: The hook returned something else, or typer can make no command of a function.
        ValueError: A name is no command's, or that of one of openjev's own commands.
    """
    commands: dict[str, Callable[..., None]] = {}
    for result in returned:
        if not isinstance(result, Mapping):
            raise TypeError(f"openjev_commands returned {type(result).__name__}; return a dict of name to function")
        for name, function in result.items():
            if not isinstance(name, str) or not callable(function):
                maps = f"{name!r} to {type(function).__name__}"
                raise TypeError(f"openjev_commands returned a dict that maps {maps}; return a dict of name to function")
            if not NAME_PATTERN.fullmatch(name):
                accepted = "a lower-case letter, then letters, digits, - or _, 64 characters at most"
                raise ValueError(f"{name!r} is no name for a command: {accepted}")
            if name in OWN_COMMANDS:
                raise ValueError(f"the command {name!r} is one of openjev's own; choose another name")
            try:
                command_of(name, function)
            except Exception as error:
                kind = f"the {type(function).__name__} that openjev_commands returned for {name!r}"
                raise TypeError(f"typer makes no command of {kind}: {error}; return a plain function") from error
            commands[name] = function
    return commands


def command_of(name: str, function: Callable[..., None], kind: Any = None) -> Any:
    """A function as a command.

    Args:
        name: The command's name.
        function: What it does.
        kind: The command's class; typer's own when not given.
    """
    import typer  # noqa: PLC0415 - for plugins that add commands alone

    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    single.command(name, cls=kind)(function)
    command = typer.main.get_command(single)
    command.name = name
    return command
