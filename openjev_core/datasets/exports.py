"""Answered rows as a table: their own columns, and their answers' beside them."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from openjev_core.datasets.places import file_error, write_text
from openjev_core.datasets.rows import Row
from openjev_core.datasets.shapes import Shape
from openjev_core.datasets.tables import needs_extra
from openjev_core.datasets.targets import TargetShape
from openjev_core.errors import StartupError
from openjev_core.json_document import compact

FORMULA = re.compile(r"[=+\-@\t\r]")
"""First characters of a text that a spreadsheet runs as a formula."""

EXTRA = ("x_order_spread", "x_label_mass", "x_calibration", "x_accept")
"""What an answer may have beside its type's fields."""

Cells = dict[str, Any]
"""Column to value, of one row that is written."""


def check_export(path: Path) -> None:
    """Check, before any row is answered, that a table can be written to this path.

    Raises:
        RequestError: The name's ending is that of no format.
        StartupError: The folder does not exist, or the format is Parquet and the library that writes it is missing.
    """
    endings = (".csv", ".tsv", ".parquet", ".jsonl")
    if path.suffix.lower() not in endings:
        raise file_error(path, f"an export ends in one of {', '.join(endings)}")
    if path.suffix.lower() == ".parquet":
        needs_extra("polars", "Parquet files")
    if not path.parent.is_dir():
        raise StartupError(f"{path}: cannot be written: there is no folder {path.parent}")


def check_clashes(rows: Sequence[Row], shapes: Mapping[int, Mapping[str, Shape | TargetShape]]) -> None:
    """Check, before any row is answered, that no column of an export has the name of another.

    Args:
        rows: The rows of the data set.
        shapes: Row number to the shapes of its questions by id; questions that are not known here are not checked.

    Raises:
        RequestError: An answer's column has the name of a column in the data, or of another answer's.
    """
    seen: set[tuple[Any, ...]] = set()
    for row in rows:
        of_row = shapes[row.number]
        # Most data sets ask the same questions of every row.
        key = (*row.fields, *((question_id, id(shape)) for question_id, shape in of_row.items()))
        if key not in seen:
            seen.add(key)
            answers = {name: {**_sample(shape), **dict.fromkeys(EXTRA)} for name, shape in of_row.items()}
            cells_of(row, {"answers": answers, "error": ""})


def _sample(shape: Shape | TargetShape) -> Mapping[str, Any]:
    return dict.fromkeys(shape.fields) if isinstance(shape, TargetShape) else shape.answers[0]


def export(path: Path, rows: Sequence[Row], records: Mapping[int, Mapping[str, Any]], *, escape_formulas: bool) -> None:
    """Write every answered row's own columns and its answers as a table, in the format that the name's ending says.

    A field of an answer becomes the column ``QUESTION.FIELD``, and a member of an object in it the column
    ``QUESTION.FIELD.MEMBER``; a refused row has its reason in ``error``. In CSV and Parquet, objects and arrays become
    JSON text, and a cell that a row does not have stays empty.

    Args:
        path: The table's file.
        rows: The rows of the data set.
        records: Row number to record.
        escape_formulas: Put an apostrophe before each text in CSV that a spreadsheet would run as a formula.

    Raises:
        RequestError: An answer's column has the name of a column in the data, or of another answer's.
        StartupError: The file cannot be written.
    """
    table = [cells_of(row, records[row.number]) for row in rows if row.number in records]
    columns, ending = list(dict.fromkeys(name for cells in table for name in cells)), path.suffix.lower()
    try:
        if ending == ".parquet":
            _write_parquet(path, columns, table)
        elif ending == ".jsonl":
            write_text(path, "".join(compact(cells) + "\n" for cells in table))
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, delimiter="\t" if ending == ".tsv" else ",")
                for cells in (dict(zip(columns, columns, strict=True)), *table):
                    written = [scalar(cells.get(name)) for name in columns]
                    writer.writerow(map(_escaped, written) if escape_formulas else written)
    except OSError as error:
        raise StartupError(f"{path}: cannot be written: {error.strerror or error}") from error


def cells_of(row: Row, record: Mapping[str, Any]) -> Cells:
    """A row's own columns, and those of its answers or of the reason why it was refused.

    Raises:
        RequestError: Two columns would have one name.
    """
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


def _escaped(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula. Numbers stay numbers."""
    if not isinstance(value, str) or not FORMULA.match(value):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def _write_parquet(path: Path, columns: Sequence[str], table: Sequence[Cells]) -> None:
    polars = needs_extra("polars", "Parquet files")
    data = {name: column_of([scalar(cells.get(name)) for cells in table]) for name in columns}
    polars.DataFrame(data, strict=True).write_parquet(path)


def column_of(values: list[Any]) -> list[Any]:
    """A column of one type: integers beside floats become floats, any other mixture becomes text."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1:
        return values
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    return [value if value is None or isinstance(value, str) else compact(value) for value in values]


def scalar(value: Any) -> Any:
    """A cell of CSV or Parquet: objects and arrays become JSON text."""
    return compact(value) if isinstance(value, (dict, list)) else value
