"""What ``--help`` prints: commands and options by panel, and settings that seldom matter by name alone.

It is written as plain text. Drawing the same with rich takes half a second of CPU.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from typer.core import TyperCommand

FOLDED = "More settings (`openjev settings` says what each is and what it stands at)"
"""The panel whose flags are named and not described."""


class PanelledCommand(TyperCommand):
    """A command whose options stand in the panels that they were given, its own first."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options, panel by panel in the order in which each is first named."""
        panels: dict[str, list[Any]] = {}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                own = "Arguments" if parameter.param_type_name == "argument" else "Options"
                name = getattr(parameter, "rich_help_panel", None) or own
                panels.setdefault(name, []).append(parameter.opts[0] if name == FOLDED else record)
        folded = panels.pop(FOLDED, ())
        for name, rows in panels.items():
            with formatter.section(name):
                formatter.write_dl(rows)
        if folded:
            with formatter.section(FOLDED):
                indent = " " * formatter.current_indent
                flags = textwrap.fill(
                    " ".join(folded),
                    formatter.width,
                    initial_indent=indent,
                    subsequent_indent=indent,
                    break_on_hyphens=False,
                )
                formatter.write(f"{flags}\n")


def write_commands(panels: Mapping[str, Sequence[tuple[str, str]]], formatter: Any) -> None:
    """Write the names of commands with what each does, panel by panel, in columns that stand below one another."""
    width = max(len(name) for rows in panels.values() for name, _ in rows)
    for panel, rows in panels.items():
        with formatter.section(panel):
            formatter.write_dl([(name.ljust(width), summary) for name, summary in rows])
