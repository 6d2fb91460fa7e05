"""A user's files: their encoding, errors that name file, row and field; writing a text."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from pathlib import Path

from openjev_core.errors import Loc, Problem, RequestError, SettingsError, StartupError, describe_problem

MOST_SHOWN = 20
"""Upper bound on the problems listed one by one: a file of a million rows must not become a million lines."""


BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""What a text file may begin with, and the encoding that it means. UTF-32's little-endian mark begins with UTF-16's."""


def utf8_of(data: bytes, source: object, encoding: str | None = None) -> bytes:
    """A text in UTF-8 without a byte order mark. Without mark and encoding the bytes are returned as they are.

    Args:
        data: The text's bytes. A byte order mark, which programs on Windows write, says their encoding.
        source: The file, for messages.
        encoding: Of a text without a byte order mark.

    Raises:
        RequestError: The bytes are no text in that encoding.
        SettingsError: The encoding is unknown.
    """
    marked = next((name for mark, name in BYTE_ORDER_MARKS if data.startswith(mark)), encoding)
    if marked is None:
        return data
    try:
        return data.decode(marked).encode("utf-8", "surrogatepass")
    except LookupError:
        raise SettingsError(f"--encoding {marked}: unknown; expected a name such as utf-8, utf-16 or cp1252") from None
    except UnicodeDecodeError as error:
        raise file_error(source, f"is not valid {marked}: {error.reason} at byte {error.start}") from None


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


def visible(name: str) -> str:
    """A column's name for a message: with escapes where it holds characters that nobody sees."""
    return name if name.isprintable() else ascii(name)
