"""The command group: reports openjev's own errors, and has the commands that plugins add."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from typing import Any

import typer
from typer.core import TyperGroup

from openjev_core.cli.failures import FAILED, complain, exit_code_of, lines_of
from openjev_core.errors import OpenJevError


class OpenJevGroup(TyperGroup):
    """``openjev``. Plugins are loaded only for a name that is not its own, and for the list of all commands."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command.

        Raises:
            typer.Exit: The command raised one of openjev's errors, or the disk is full, which has been reported.
        """
        try:
            return super().invoke(ctx)
        except OpenJevError as error:
            for line in lines_of(error):
                complain(line)
            raise typer.Exit(exit_code_of(error)) from None
        except OSError as error:
            # A full disk under standard output is nobody's bug; a reader that went away is Typer's to handle.
            if error.errno != errno.ENOSPC:
                raise
            complain(f"the output cannot be written: {error.strerror}")
            raise typer.Exit(FAILED) from None

    def list_commands(self, ctx: Any) -> list[str]:
        """Its own commands, then the plugins'."""
        own = super().list_commands(ctx)
        return [*own, *sorted(name for name in added_commands() if name not in own)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Its own command of that name, else a plugin's."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        function = added_commands().get(cmd_name)
        return None if function is None else command_of(cmd_name, function)


def command_of(name: str, function: Callable[..., None]) -> Any:
    """A plugin's function as a command."""
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    single.command(name)(function)
    command = typer.main.get_command(single)
    command.name = name
    return command


def added_commands() -> Mapping[str, Callable[..., None]]:
    """The commands of the installed plugins."""
    import os  # noqa: PLC0415

    from openjev_core.plugins.registry import load_registry  # noqa: PLC0415
    from openjev_core.settings import load_settings  # noqa: PLC0415

    try:
        disabled = load_settings(os.environ).settings.disable_plugins
    except OpenJevError:
        disabled = ()  # the command itself tells what is wrong with the settings
    return load_registry(disabled).commands
