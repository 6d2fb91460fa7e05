"""``openjev plugins``: the installed question types. One module per command."""

from __future__ import annotations

import typer

from openjev_core.cli.plugins.check import check_plugins
from openjev_core.cli.plugins.listing import list_plugins
from openjev_core.cli.plugins.new import new_plugin
from openjev_core.cli.plugins.show import show_plugin

app = typer.Typer(help="The installed question types.", no_args_is_help=True)
app.command("list")(list_plugins)
app.command("show")(show_plugin)
app.command("check")(check_plugins)
app.command("new")(new_plugin)
