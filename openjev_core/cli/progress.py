"""What is being waited for, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from openjev_core.cli.failures import complain


@contextmanager
def waiting() -> Iterator[Callable[[str], None]]:
    """A function that takes lines on what is being waited for.

    On a terminal the latest one stands beside a spinner and is gone in the end; elsewhere each is a line of its own.
    """
    from rich.console import Console  # noqa: PLC0415
    from rich.markup import escape  # noqa: PLC0415

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield complain
        return
    with console.status("starting") as status:
        yield lambda line: status.update(escape(line))
