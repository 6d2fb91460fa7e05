"""The terminal: text made safe to show, tables, errors with their exit codes, and progress of a start."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from openjev_core.errors import OpenJevError, RequestError, SettingsError, describe_problem

if TYPE_CHECKING:
    from rich.console import Console

FAILED = 1
BAD_INPUT = 2

WIDTH_OF_A_FILE = 100

# Control characters could move the cursor or recolour the screen, and bidirectional overrides could reorder a line.
# Joiners stay: Bengali and emoji need them.
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    """``text`` as one line in which every character that a terminal would obey is written as its escape."""
    # None of these is printable, and asking that first takes a hundredth of the time of looking for each.
    return text if text.isprintable() else UNSAFE.sub(lambda found: repr(found.group())[1:-1], text)


def console() -> Console:
    """Standard output for tables. Piped, it has a fixed width: a file has no edge at which to wrap."""
    from rich.console import Console  # noqa: PLC0415 - `openjev --help` draws no tables

    terminal = Console(highlight=False)
    return terminal if terminal.is_terminal else Console(highlight=False, width=WIDTH_OF_A_FILE)


def complain(line: str) -> None:
    """Write one line to standard error."""
    print(f"openjev: {shown(line)}", file=sys.stderr)  # noqa: T201 - a command's own output


def complain_about(error: OpenJevError) -> int:
    """Write one line per problem to standard error.

    Returns:
        The exit code: 2 when the user's input is wrong, 1 for everything else.
    """
    problems = error.problems if isinstance(error, RequestError) else ()
    for line in map(describe_problem, problems) if problems else (str(error),):
        complain(line)
    return BAD_INPUT if isinstance(error, (RequestError, SettingsError)) else FAILED


@contextmanager
def waiting() -> Iterator[Callable[[str], None]]:
    """Give a function that shows lines about a wait on standard error.

    On a terminal the latest line stands beside a spinner and disappears in the end, but for what was found at an
    address; elsewhere each line is written.
    """
    from rich.console import Console  # noqa: PLC0415 - as above
    from rich.markup import escape  # noqa: PLC0415 - as above

    errors = Console(stderr=True, highlight=False)
    if not errors.is_terminal:
        yield complain
        return
    with errors.status("starting") as status:

        def told(line: str) -> None:
            status.update(escape(line))
            if line.startswith("connect: "):
                errors.print(f"openjev: {escape(line)}", soft_wrap=True)

        yield told
