"""The ``openjev`` command."""

from __future__ import annotations


def main() -> None:
    """Run the command line: the entry point of the ``openjev`` script."""
    from openjev_core.cli.app import app  # noqa: PLC0415 - importing the package must not build the command line
    from openjev_core.ending import leave_threads_behind  # noqa: PLC0415 - the same

    try:
        app()
    finally:
        leave_threads_behind()
