"""Answers beside the rows that they are about, as a table."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from openjev_core.errors import StartupError
from openjev_core.evaluating.extra import needs_extra
from openjev_core.evaluating.places import file_error, write_text
from openjev_core.evaluating.rows import Row
from openjev_core.json_document import compact

FORMATS = (".csv", ".tsv", ".parquet", ".jsonl")

Cells = dict[str, Any]


def check_export(path: Path) -> None:
    """Refuse a file name before any row is answered for it.

    Raises:
        RequestError: Its ending is none of :data:`FORMATS`.
        StartupError: It is Parquet, and what writes that is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise file_error(path, f"an export ends in one of {', '.join(FORMATS)}")
    if path.suffix.lower() == ".parquet":
        needs_extra("polars", "Parquet files")


def export(path: Path, rows: Sequence[Row], records: Mapping[int, Mapping[str, Any]]) -> None:
    """Write every answered row's own columns and its answers'.

    An answer's field becomes the column ``QUESTION.FIELD``, and a member of an object in it ``QUESTION.FIELD.MEMBER``;
    a refused row has its reason in ``error``. In CSV and Parquet, values that are no scalars are JSON text.

    Raises:
        RequestError: An answer's column has the name of a column in the data, or of another answer's.
        StartupError: The file cannot be written.
    """
    table = [_cells(row, records[row.number]) for row in rows if row.number in records]
    columns = list(dict.fromkeys(name for cells in table for name in cells))
    try:
        if path.suffix.lower() == ".parquet":
            _write_parquet(path, columns, table)
        elif path.suffix.lower() == ".jsonl":
            write_text(path, "".join(compact(cells) + "\n" for cells in table))
        else:
            _write_delimited(path, "\t" if path.suffix.lower() == ".tsv" else ",", columns, table)
    except OSError as error:
        raise StartupError(f"{path}: cannot be written: {error.strerror or error}") from error


def _cells(row: Row, record: Mapping[str, Any]) -> Cells:
    pairs = list(_answer_cells(record.get("answers", {})))
    if "error" in record:
        pairs.append(("error", record["error"]))
    added = dict(pairs)
    if len(added) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise file_error(row.place, f"the export would have the column {twice!r} twice; rename one of the questions")
    if taken := [name for name in added if name in row.fields]:
        raise file_error(row.place, f"the export would have the column {taken[0]!r} twice; rename the data's column")
    return {**row.fields, **added}


def _answer_cells(answers: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Column and value of every field of every answer. A question's id may hold a dot, and so may an option's name."""
    for question_id, answer in answers.items():
        for name, value in answer.items():
            if isinstance(value, Mapping):
                yield from ((f"{question_id}.{name}.{member}", child) for member, child in value.items())
            elif name != "type":
                yield f"{question_id}.{name}", value


def _write_delimited(path: Path, delimiter: str, columns: Sequence[str], table: Iterable[Cells]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows([_scalar(cells.get(name)) for name in columns] for cells in table)


def _write_parquet(path: Path, columns: Sequence[str], table: Sequence[Cells]) -> None:
    polars = needs_extra("polars", "Parquet files")
    data = {name: _column([_scalar(cells.get(name)) for cells in table]) for name in columns}
    polars.DataFrame(data, strict=True).write_parquet(path)


def _column(values: list[Any]) -> list[Any]:
    """A column of one type: numbers of both kinds as floats, any other mixture as text."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1:
        return values
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    return [value if value is None or isinstance(value, str) else compact(value) for value in values]


def _scalar(value: Any) -> Any:
    return compact(value) if isinstance(value, (dict, list)) else value
