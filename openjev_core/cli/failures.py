"""What becomes of an error: lines on standard error and an exit code."""

from __future__ import annotations

import sys

from openjev_core.cli.terminal import shown
from openjev_core.errors import OpenJevError, RequestError, SettingsError, describe_problem

FAILED = 1
BAD_INPUT = 2


def complain(line: str) -> None:
    """Write one line to standard error."""
    print(f"openjev: {shown(line)}", file=sys.stderr)  # noqa: T201 - a command's own output


def exit_code_of(error: OpenJevError) -> int:
    """2 for what the user wrote, 1 for everything else."""
    return BAD_INPUT if isinstance(error, (RequestError, SettingsError)) else FAILED


def lines_of(error: OpenJevError) -> list[str]:
    """One line per problem."""
    if isinstance(error, RequestError):
        return [describe_problem(problem) for problem in error.problems]
    return [str(error)]
