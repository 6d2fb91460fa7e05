"""A user's files: errors that name file, row and field; reading a line of JSON; writing a text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from openjev_core.errors import Loc, Problem, RequestError, StartupError, describe_problem
from openjev_core.json_document import parse_document

MOST_SHOWN = 20
"""Upper bound on the problems listed one by one: a file of a million rows must not become a million lines."""


def file_error(path: object, msg: str) -> RequestError:
    """An error about a whole file."""
    return RequestError.at((str(path),), msg)


def row_error(place: str, loc: Loc, msg: str) -> RequestError:
    """An error about a field of a row.

    Args:
        place: The row, such as ``tickets.jsonl line 7``.
        loc: The field's path in the row.
        msg: What was found, what is accepted.
    """
    return in_row(place, RequestError.at(loc, msg))


def in_row(place: str, error: RequestError) -> RequestError:
    """The same error with the row's place before each path: ``tickets.jsonl line 7: labels.team: ...``."""
    return RequestError([Problem((place,), describe_problem(problem), problem.type) for problem in error.problems])


def parse_line(place: str, line: bytes) -> Any:
    """The JSON value of one line.

    Raises:
        RequestError: The line is no JSON. Names ``place``.
    """
    try:
        return parse_document(line, "the line")
    except RequestError as error:
        raise in_row(place, error) from None


def raise_all(problems: Sequence[Problem]) -> None:
    """Raise problems as one error: the first :data:`MOST_SHOWN` in full, the rest as a count. Does nothing without any.

    Raises:
        RequestError: ``problems`` is not empty.
    """
    if not problems:
        return
    shown: list[Problem] = list(problems[:MOST_SHOWN])
    if len(problems) > MOST_SHOWN:
        shown.append(Problem((), f"and {len(problems) - MOST_SHOWN} more problems of this kind in other rows"))
    raise RequestError(shown)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8.

    Raises:
        StartupError: The file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StartupError(f"{path}: cannot be written: {error.strerror or error}") from error


def listed(words: Iterable[object], most: int = 12) -> str:
    """Words for a message: the first ``most`` of them, and how many more there are."""
    known = [str(word) for word in words]
    rest = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + rest
