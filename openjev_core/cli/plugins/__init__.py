"""``openjev plugins``: the installed question types. One module per command."""

from __future__ import annotations

import typer

from openjev_core.cli.plugins.listing import list_plugins

app = typer.Typer(help="The installed question types.", no_args_is_help=True)
app.command("list")(list_plugins)
