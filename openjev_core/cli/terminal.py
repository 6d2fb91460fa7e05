"""Text that others wrote, on a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_OF_A_FILE = 100

# Control characters could move the cursor or recolour the screen, and bidirectional overrides could reorder a line.
# Joiners stay: Bengali and emoji need them.
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    """``text`` as one line that cannot do anything but be read: what could is spelled out."""
    return UNSAFE.sub(lambda found: repr(found.group())[1:-1], text)


def console() -> Console:
    """Standard output for tables. Piped, it is as wide as a line may be: a file has no edge to wrap at."""
    from rich.console import Console  # noqa: PLC0415 - `openjev --help` draws no tables

    terminal = Console(highlight=False)
    return terminal if terminal.is_terminal else Console(highlight=False, width=WIDTH_OF_A_FILE)
