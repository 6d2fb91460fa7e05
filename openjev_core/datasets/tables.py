"""Tables in files: records read from JSONL, CSV and Parquet."""

from __future__ import annotations

import base64
import csv
import io
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

from attrs import frozen

from openjev_core.datasets.contents import check_content, text_of
from openjev_core.datasets.places import file_error, in_row, listed, row_error
from openjev_core.errors import Loc, RequestError, StartupError
from openjev_core.json_document import parse_document

LONGEST_FIELD = 2**31 - 1
"""Characters: the largest limit that the csv module takes on every platform."""

SEPARATOR_LINE = re.compile(r'"?sep=(.)"?')
"""A first line by which Excel is told the delimiter."""


@frozen(kw_only=True)
class Layout:
    """How a file of rows is to be read.

    Attributes:
        read: Columns that the model or this program reads: their values must be certain.
        labels: Columns of labels, which may be missing.
        delimiter: Between the cells of CSV; ``None`` finds it.
        encoding: Of text without a byte order mark; ``None`` for UTF-8.
    """

    read: Collection[str] = ()
    labels: Collection[str] = ()
    delimiter: str | None = None
    encoding: str | None = None


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


def read_records(path: Path, layout: Layout) -> list[Record]:
    """Read a file in the format that its name's ending says.

    Raises:
        RequestError: The file cannot be read, holds no rows, or its rows do not all have the same columns; or a value
            of a column that is read is no JSON, or is a null inside a struct. Names the row.
        SettingsError: The encoding is unknown.
        StartupError: The file is Parquet, and the library that reads it is not installed.
    """
    readers: Mapping[str, Callable[[Path, Layout], Iterator[Record]]] = {
        ".jsonl": _jsonl,
        ".ndjson": _jsonl,
        ".csv": _delimited,
        ".tsv": _delimited,
        ".parquet": _parquet,
    }
    reader = readers.get(path.suffix.lower())
    try:
        check_content(path)
        if reader is None:
            lines = "; `jq -c '.[]'` makes lines for .jsonl of a JSON array" if path.suffix.lower() == ".json" else ""
            raise file_error(path, f"a file of rows ends in one of {', '.join(readers)}{lines}")
        records = list(reader(path, layout))
    except OSError as error:
        raise file_error(path, f"cannot be read: {error.strerror or error}") from None
    if not records:
        raise file_error(path, "holds no rows")
    _check_columns(records, frozenset(layout.labels))
    return records


def _jsonl(path: Path, layout: Layout) -> Iterator[Record]:
    for number, line in enumerate(text_of(path, layout.encoding).split(b"\n"), start=1):
        if not line.strip():
            continue
        place = f"{path.name} line {number}"
        try:
            value = parse_document(line, "the line")
        except RequestError as error:
            msg = f"expected one whole JSON object in each line (`jq -c` writes them so): {error}"
            raise row_error(place, (), msg) from None
        if not isinstance(value, dict):
            msg = "expected one whole JSON object in each line (`jq -c '.[]'` makes them of an array)"
            raise row_error(place, (), msg)
        yield Record(place, value)


def _delimited(path: Path, layout: Layout) -> Iterator[Record]:
    text = text_of(path, layout.encoding).decode()
    # By default a field of more than 128 KiB is an error, and a state may well be longer.
    csv.field_size_limit(LONGEST_FIELD)
    first, _, rest = text.partition("\n")
    said = SEPARATOR_LINE.fullmatch(first.strip())
    delimiter = layout.delimiter or (said[1] if said else _delimiter_of(path, text))
    lines = io.StringIO(rest if said else text, newline="")
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    skipped = 1 if said else 0
    try:
        header = [name.strip() for name in next(reader, [])]
        while len(header) > 1 and not header[-1]:
            header.pop()  # what spreadsheets leave at the end
        if repeated := sorted({name for name in header if name and header.count(name) > 1}):
            raise file_error(path, f"the header has these columns twice: {listed(repeated)}")
        started = reader.line_num + 1
        for values in reader:
            place, started = f"{path.name} line {started + skipped}", reader.line_num + 1
            if [name.strip() for name in values] == header:
                raise row_error(place, (), "repeats the header; is this several files in one?")
            # Spreadsheets leave rows of empty cells behind. A single one that is quoted was written on purpose.
            if any(values) or len(values) == len(header) == 1:
                yield Record(place, _cells_of(place, header, values, delimiter))
    except csv.Error as error:
        msg = f"line {reader.line_num + skipped} is no CSV: {error}; a quote inside a quoted cell is written twice"
        raise file_error(path, msg) from None


def _delimiter_of(path: Path, text: str) -> str:
    """The delimiter of a file whose flags do not say it: by its ending, and by its header where that has no comma."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    for delimiter in ",;\t|":
        try:
            header = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), [])
        except csv.Error:
            continue
        if len(header) > 1:
            return delimiter
    return ","


def _cells_of(place: str, header: Sequence[str], values: Sequence[str], delimiter: str) -> dict[str, str]:
    """Column to cell. The first column needs no name: pandas writes row numbers so.

    Cells of other columns without a name, and cells beyond the header's, may only be empty.
    """
    if len(values) < len(header) or any(values[len(header) :]):
        msg = (
            f"expected {len(header)} columns as in the header, found {len(values)}; cells are separated by "
            f"{delimiter!r}, and --delimiter names another character"
        )
        raise row_error(place, (), msg)
    cells = list(zip(header, values, strict=False))
    for number, (name, cell) in enumerate(cells[1:], start=2):
        if cell and not name:
            raise row_error(place, (), f"column {number} holds {cell!r:.40} and has no name in the header")
    return dict([*cells[:1], *((name, cell) for name, cell in cells[1:] if name)])


def _parquet(path: Path, layout: Layout) -> Iterator[Record]:
    polars = needs_extra("polars", "Parquet files")
    try:
        frame = polars.read_parquet(path)
    except polars.exceptions.PolarsError as error:
        raise file_error(path, f"is no Parquet file that can be read: {error}") from None
    for number, fields in enumerate(frame.iter_rows(named=True), start=1):
        place = f"{path.name} row {number}"
        yield Record(place, {name: _cell_value(place, name, value, layout) for name, value in fields.items()})


def _cell_value(place: str, name: str, value: Any, layout: Layout) -> Any:
    """A Parquet cell as JSON has it; what JSON does not have is an error where the column is read."""
    if name not in layout.read:
        # Labels may be missing, and the other columns are shown beside the answers and never to the model.
        value = _without_nan(value)
    try:
        return _json_value(value, (name,), nulls=name not in layout.read)
    except RequestError as error:
        if name in layout.read or name in layout.labels:
            raise in_row(place, error) from None
        return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _json_value(value: Any, loc: Loc, *, nulls: bool) -> Any:
    """A Parquet value as JSON has it: dates and times as ISO 8601 text, decimals as their digits.

    Args:
        value: The value.
        loc: Its path in the row.
        nulls: Whether a struct may hold nulls. A Parquet file has every field of a struct in every row and fills in
            nulls, so a null may stand for a field that the row does not have.
    """
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        if not nulls and (empty := [key for key, child in value.items() if child is None]):
            msg = (
                "is null, and a Parquet file fills the fields that a row does not have with nulls, so this row may not "
                "have the field at all; store the column as JSON text (--state-json reads it from the state's column)"
            )
            raise RequestError.at((*loc, empty[0]), msg)
        return {key: _json_value(child, (*loc, key), nulls=nulls) for key, child in value.items()}
    if isinstance(value, list):
        return [_json_value(child, (*loc, index), nulls=nulls) for index, child in enumerate(value)]
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise RequestError.at(loc, f"holds {value!r:.40}, which JSON does not have; convert the column to text")


def _without_nan(value: Any) -> Any:
    """The value with null for NaN, by which pandas marks a missing value."""
    if isinstance(value, Mapping):
        return {key: _without_nan(child) for key, child in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def _check_columns(records: list[Record], labels: frozenset[str]) -> None:
    """Refuse rows of different fields. Labels may be missing: a row that nobody labelled has none to write."""
    expected = records[0].fields.keys()
    for record in records[1:]:
        if record.fields.keys() == expected:
            continue
        if missing := [name for name in expected if name not in record.fields and name not in labels]:
            msg = f"missing; the first row has it, and all rows must have the same fields ({listed(expected)})"
            raise row_error(record.place, (missing[0],), msg)
        if extra := [name for name in record.fields if name not in expected and name not in labels]:
            msg = f"the first row does not have this field, and all rows must have the same ({listed(expected)})"
            raise row_error(record.place, (extra[0],), msg)
