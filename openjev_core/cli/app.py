"""The command line: its commands, those that plugins add, and what becomes of an error.

Commands import what they need inside their functions: `openjev --help` must not load a model's libraries.
"""

from __future__ import annotations

import errno
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from openjev_core.cli import plugins
from openjev_core.cli.ask import ask
from openjev_core.cli.batch import batch
from openjev_core.cli.batch_ray import batch_ray
from openjev_core.cli.calibrate import calibrate
from openjev_core.cli.evaluate import evaluate
from openjev_core.cli.help import PanelledCommand, write_commands
from openjev_core.cli.mcp import mcp
from openjev_core.cli.serve import serve
from openjev_core.cli.setting_flags import with_own_flags
from openjev_core.cli.settings import settings
from openjev_core.cli.smoke import smoke
from openjev_core.cli.terminal import FAILED, complain, complain_about
from openjev_core.errors import OpenJevError
from openjev_core.settings import variable

if TYPE_CHECKING:
    from openjev_core.plugins.registry import Registry


OF_PLUGINS = "Commands that plugins add"
SUMMARY_WIDTH = 64


class OpenJevGroup(TyperGroup):
    """``openjev``. Plugins are loaded only for a name that is none of its own, and for the list of all commands."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command.

        Raises:
            typer.Exit: The command raised one of openjev's errors, or the disk is full; either has been reported.
        """
        try:
            return super().invoke(ctx)
        except OpenJevError as error:
            raise typer.Exit(complain_about(error)) from None
        except OSError as error:
            # A full disk under standard output is nobody's bug; a reader that went away is Typer's to handle.
            if error.errno != errno.ENOSPC:
                raise
            complain(f"the output cannot be written: {error.strerror}")
            raise typer.Exit(FAILED) from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, one line each, by what they are for."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            panel = getattr(command, "rich_help_panel", None) or OF_PLUGINS
            panels.setdefault(panel, []).append((name, command.get_short_help_str(SUMMARY_WIDTH)))
        write_commands(panels, formatter)

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
        if function is None:
            return None
        from openjev_core.plugins.commands import command_of  # noqa: PLC0415 - as in added_commands

        return command_of(cmd_name, function)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called. One that takes an engine takes the plugins' own settings, too."""
        resolved: Any = super().resolve_command(ctx, args)
        name, command, rest = resolved
        if any(parameter.name == "engine" for parameter in getattr(command, "params", ())):
            from openjev_core.plugins.commands import command_of  # noqa: PLC0415 - as in added_commands

            own = inspect.unwrap(command.callback)
            flagged = with_own_flags(own, installed_plugins())
            command = command if flagged is own else command_of(name, flagged, PanelledCommand)
        return name, command, rest


def added_commands() -> Mapping[str, Callable[..., None]]:
    """The commands of the installed plugins."""
    return installed_plugins().commands


def installed_plugins() -> Registry:
    """The plugins that there are."""
    from openjev_core.plugins.registry import load_registry  # noqa: PLC0415
    from openjev_core.settings import Settings, load_settings  # noqa: PLC0415

    try:
        settings = load_settings(os.environ).settings
    except OpenJevError:
        settings = Settings()  # the command itself reports what is wrong with the settings
    return load_registry(settings.disable_plugins, settings.plugins)


app = typer.Typer(
    name="openjev",
    cls=OpenJevGroup,
    no_args_is_help=True,
    rich_markup_mode=None,  # cli/help.py says why
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(wanted: bool) -> None:
    """Print the version and end, when the flag is given."""
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - for this flag alone

        typer.echo(f"openjev {version('openjev')}")
        raise typer.Exit


def use_files(paths: list[str] | None) -> None:
    """Add plugins that are files, for this command and whatever it starts."""
    if paths:
        os.environ[variable("plugins")] = ",".join(paths)


@app.callback()
def openjev(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            callback=use_files,
            is_eager=True,  # --help lists the commands that they add
            help="A Python file that is a plugin, besides those installed. Repeatable.",
        ),
    ] = None,
) -> None:
    """Typed questions about a state, answered with probabilities read from a language model's first output token."""
    del version, plugin  # their callbacks have done it all


def schema() -> None:
    """Print the API as an OpenAPI document, with the installed question types in it. Needs no model."""
    from openjev_core.api.openapi import openapi_document  # noqa: PLC0415

    with redirect_stdout(sys.stderr):  # examples are made by the types' own code, which may print
        document = openapi_document(plugins.enabled_types())
    typer.echo(json.dumps(document, indent=2))


def add(function: Callable[..., None], panel: str, summary: str, name: str | None = None) -> None:
    """Add a command.

    Args:
        function: What it does; its docstring is the command's ``--help``.
        panel: What it is for, in the list of all commands.
        summary: Its line there.
        name: Its name, where that is not the function's.
    """
    app.command(name, cls=PanelledCommand, rich_help_panel=panel, short_help=summary)(function)


add(ask, "Ask", "Answer one request, and print a table of the answers.")
add(serve, "Serve", "Serve the API, by default on http://127.0.0.1:8000.")
add(mcp, "Serve", "Offer tools to an agent, by the Model Context Protocol.")
add(smoke, "Serve", "Check that a running server answers as it should.")
add(schema, "Serve", "Print the API as an OpenAPI document.")
add(batch, "Data", "Answer every row of a file.")
add(batch_ray, "Data", "Answer the rows of many files on a Ray cluster.")
add(evaluate, "Data", "Answer labelled rows, and report how good the answers are.", "eval")
add(calibrate, "Data", "Fit probabilities to labelled rows.")
PLUGINS_AND_SETTINGS = "Plugins and settings"
app.add_typer(
    plugins.app,
    name="plugins",
    rich_help_panel=PLUGINS_AND_SETTINGS,
    short_help="List, show, check and write question types and engines.",
)
add(settings, PLUGINS_AND_SETTINGS, "Print every setting with its value and its meaning.")
