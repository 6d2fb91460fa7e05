"""Tables in files: records read from JSONL, CSV and Parquet, and written to them."""

from __future__ import annotations

import codecs
import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

from attrs import frozen

from openjev_core.datasets.places import file_error, listed, parse_line, row_error, write_text
from openjev_core.errors import StartupError
from openjev_core.json_document import compact

LONGEST_FIELD = 2**31 - 1
"""Characters: the largest limit that the csv module takes on every platform."""

Cells = dict[str, Any]
"""Column to value, of one row that is written."""


@frozen
class Record:
    """One row of a file as it stands there.

    Attributes:
        place: For messages: ``tickets.jsonl line 7``.
        fields: Column to value. Of CSV, every value is a string.
    """

    place: str
    fields: Mapping[str, Any]


def needs_extra(module: str, what: str) -> Any:
    """Import a library of the ``eval`` extra.

    Args:
        module: Its import name.
        what: What needs it, for the message.

    Raises:
        StartupError: The library is not installed. Says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise StartupError(f"{what} need {library} ({error}); install it with: pip install 'openjev[eval]'") from None


def read_records(path: Path) -> list[Record]:
    """Read a file in the format that its name's ending says.

    Raises:
        RequestError: The file cannot be read, holds no rows, or its rows do not all have the same columns. Names the
            row.
        StartupError: The file is Parquet, and the library that reads it is not installed.
    """
    readers: Mapping[str, Callable[[Path], Iterator[Record]]] = {
        ".jsonl": _jsonl,
        ".ndjson": _jsonl,
        ".csv": lambda path: _delimited(path, ","),
        ".tsv": lambda path: _delimited(path, "\t"),
        ".parquet": _parquet,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise file_error(path, f"a file of rows ends in one of {', '.join(readers)}")
    try:
        records = list(reader(path))
    except OSError as error:
        raise file_error(path, f"cannot be read: {error.strerror or error}") from None
    if not records:
        raise file_error(path, "holds no rows")
    _check_columns(records)
    return records


def _jsonl(path: Path) -> Iterator[Record]:
    # A byte order mark, which some programs write, is no part of the first line's JSON.
    for number, line in enumerate(path.read_bytes().removeprefix(codecs.BOM_UTF8).split(b"\n"), start=1):
        if not line.strip():
            continue
        place = f"{path.name} line {number}"
        value = parse_line(place, line)
        if not isinstance(value, dict):
            raise row_error(place, (), "expected a JSON object in each line")
        yield Record(place, value)


def _delimited(path: Path, delimiter: str) -> Iterator[Record]:
    try:
        # A byte order mark, which spreadsheet programs write, is no part of the first column's name.
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise file_error(path, f"is not valid UTF-8: {error.reason} at byte {error.start}") from None
    # By default a field of more than 128 KiB is an error, and a state may well be longer.
    csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        if repeated := sorted({name for name in header if header.count(name) > 1}):
            raise file_error(path, f"the header has these columns twice: {listed(repeated)}")
        started = reader.line_num + 1
        for values in reader:
            place, started = f"{path.name} line {started}", reader.line_num + 1
            if not values:
                continue
            if len(values) != len(header):
                raise row_error(place, (), f"expected {len(header)} columns as in the header, found {len(values)}")
            yield Record(place, dict(zip(header, values, strict=True)))
    except csv.Error as error:
        raise file_error(path, f"line {reader.line_num} is no CSV: {error}") from None


def _parquet(path: Path) -> Iterator[Record]:
    polars = needs_extra("polars", "Parquet files")
    try:
        frame = polars.read_parquet(path)
    except polars.exceptions.PolarsError as error:
        raise file_error(path, f"is no Parquet file that can be read: {error}") from None
    for number, fields in enumerate(frame.iter_rows(named=True), start=1):
        place = f"{path.name} row {number}"
        yield Record(place, {name: _json_value(place, name, value) for name, value in fields.items()})


def _json_value(place: str, name: str, value: Any) -> Any:
    """A Parquet value as JSON has it: dates and times as ISO 8601 text, decimals as their digits."""
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _json_value(place, name, child) for key, child in value.items()}
    if isinstance(value, list):
        return [_json_value(place, name, child) for child in value]
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise row_error(place, (name,), f"holds {value!r:.40}, which JSON does not have; convert the column to text")


def _check_columns(records: list[Record]) -> None:
    expected = records[0].fields.keys()
    for record in records[1:]:
        if missing := [name for name in expected if name not in record.fields]:
            msg = f"missing; the first row has it, and all rows must have the same fields ({listed(expected)})"
            raise row_error(record.place, (missing[0],), msg)
        if extra := [name for name in record.fields if name not in expected]:
            msg = f"the first row does not have this field, and all rows must have the same ({listed(expected)})"
            raise row_error(record.place, (extra[0],), msg)


def check_table_name(path: Path) -> None:
    """Check, before any row is answered, that a table can be written to a file of this name.

    Raises:
        RequestError: The name's ending is that of no format.
        StartupError: The format is Parquet, and the library that writes it is not installed.
    """
    endings = (".csv", ".tsv", ".parquet", ".jsonl")
    if path.suffix.lower() not in endings:
        raise file_error(path, f"an export ends in one of {', '.join(endings)}")
    if path.suffix.lower() == ".parquet":
        needs_extra("polars", "Parquet files")


def write_table(path: Path, table: Sequence[Cells]) -> None:
    """Write rows in the format that the file name's ending says.

    In CSV and Parquet, objects and arrays become JSON text, and a cell that a row does not have stays empty.

    Raises:
        StartupError: The file cannot be written.
    """
    ending, columns = path.suffix.lower(), list(dict.fromkeys(name for cells in table for name in cells))
    try:
        if ending == ".parquet":
            _write_parquet(path, columns, table)
        elif ending == ".jsonl":
            write_text(path, "".join(compact(cells) + "\n" for cells in table))
        else:
            _write_delimited(path, "\t" if ending == ".tsv" else ",", columns, table)
    except OSError as error:
        raise StartupError(f"{path}: cannot be written: {error.strerror or error}") from error


def _write_delimited(path: Path, delimiter: str, columns: Sequence[str], table: Sequence[Cells]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows([_scalar(cells.get(name)) for name in columns] for cells in table)


def _write_parquet(path: Path, columns: Sequence[str], table: Sequence[Cells]) -> None:
    polars = needs_extra("polars", "Parquet files")
    data = {name: _column([_scalar(cells.get(name)) for cells in table]) for name in columns}
    polars.DataFrame(data, strict=True).write_parquet(path)


def _column(values: list[Any]) -> list[Any]:
    """A column of one type: integers beside floats become floats, any other mixture becomes text."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1:
        return values
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    return [value if value is None or isinstance(value, str) else compact(value) for value in values]


def _scalar(value: Any) -> Any:
    return compact(value) if isinstance(value, (dict, list)) else value
