"""The command line: which commands there are. Each command's own module says what it does.

Commands import what they need inside their functions: `openjev --help` must not load a model's libraries.
"""

from __future__ import annotations

from typing import Annotated

import typer

from openjev_core.cli import plugins
from openjev_core.cli.ask import ask
from openjev_core.cli.batch import batch
from openjev_core.cli.calibrate import calibrate
from openjev_core.cli.evaluate import evaluate
from openjev_core.cli.group import OpenJevGroup
from openjev_core.cli.schema import schema
from openjev_core.cli.serve import serve
from openjev_core.cli.settings import settings
from openjev_core.cli.smoke import smoke

app = typer.Typer(
    name="openjev",
    cls=OpenJevGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(wanted: bool) -> None:
    """Print the version and end, when asked to."""
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - for this flag alone

        typer.echo(f"openjev {version('openjev')}")
        raise typer.Exit


@app.callback()
def openjev(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Typed questions about a state, answered with probabilities read from a language model's first output token."""


app.command()(ask)
app.command()(serve)
app.command()(schema)
app.command()(settings)
app.command("eval")(evaluate)
app.command()(calibrate)
app.command()(batch)
app.command()(smoke)
app.add_typer(plugins.app, name="plugins")
