"""Rows to answer: a state, questions, and labels where there are any."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from openjev_core.datasets.places import file_error, in_row, listed, row_error, utf8_of, visible
from openjev_core.datasets.tables import Layout, Record, read_records
from openjev_core.datasets.uncertain import check_blank, check_cells, check_filled, check_written
from openjev_core.errors import Loc, RequestError
from openjev_core.json_document import compact, parse_document
from openjev_core.plugins.problems import mismatch
from openjev_core.prompts.state import MEDIA

UNREAD = {
    **dict.fromkeys(MEDIA, "this program reads text only; remove the column, or rename it if it is no media"),
    "x_orders": "give --orders for all rows, and remove the column",
}
"""Fields of a request that are not read from rows, and what to do instead."""


@frozen(kw_only=True)
class Row:
    """A row of a data set.

    Attributes:
        number: From 1, in file order.
        place: For messages.
        id: The user's id, unique in the file; the row's number where the file has none.
        state: A string, object or array.
        questions: Question id to question, as on the wire.
        labels: Question id to the right answer; questions without a label are absent.
        fields: The row as it stands in the file.
        named: Whether the id is the user's own.
    """

    number: int
    place: str
    id: str
    state: Any
    questions: Mapping[str, Any]
    labels: Mapping[str, Any]
    fields: Mapping[str, Any]
    named: bool = False

    @property
    def digest(self) -> str:
        """A digest of state, questions and labels: a row that was changed is not the row that was answered."""
        return _digest([self.state, self.questions, self.labels])

    @property
    def state_digest(self) -> str:
        """A digest of the state, by which the same row is found in another run."""
        return _digest(self.state)


@frozen(kw_only=True)
class Columns:
    """Which columns hold what.

    Attributes:
        state: The column of the state. Of several columns the state is an object.
        id: The column of the ids; ``None`` takes ``id`` where there is such a column.
        labels: Question id to the column of its labels.
        questions: The questions of every row; ``None`` where each row has its own in ``questions``.
        json_state: Whether the state's column holds JSON text; ``None`` where nobody said so.
        delimiter: Between the cells of CSV; ``None`` finds it.
        encoding: Of text files without a byte order mark; ``None`` for UTF-8.
    """

    state: tuple[str, ...] = ("state",)
    id: str | None = None
    labels: Mapping[str, str] = field(factory=dict)
    questions: Mapping[str, Any] | None = None
    json_state: bool | None = None
    delimiter: str | None = None
    encoding: str | None = None

    def layout(self) -> Layout:
        """How the file is to be read for these columns."""
        return Layout(
            read={*self.state, *([self.id] if self.id else []), "id", "questions"},
            labels={*self.labels.values(), "labels"},
            delimiter=self.delimiter,
            encoding=self.encoding,
        )

    def spelled_as(self, names: Iterable[str]) -> Columns:
        """The same columns, by the names that a file has for them: accents may be written in two ways in Unicode."""
        found: dict[str, list[str]] = {}
        for name in names:
            found.setdefault(unicodedata.normalize("NFC", name), []).append(name)

        def spelled(name: str) -> str:
            alike = found.get(unicodedata.normalize("NFC", name), [])
            return alike[0] if len(alike) == 1 else name

        return evolve(
            self,
            state=tuple(map(spelled, self.state)),
            id=self.id and spelled(self.id),
            labels={question: spelled(column) for question, column in self.labels.items()},
        )


def read_rows(path: Path, columns: Columns) -> list[Row]:
    """Read the rows of a file.

    Raises:
        RequestError: A column is missing, a value is not of the kind that its column needs, or it is uncertain what is
            meant (:mod:`openjev_core.datasets.uncertain`). Names row and field.
        StartupError: See :func:`~openjev_core.datasets.tables.read_records`.
    """
    records = read_records(path, columns.layout())
    # Rows may lack labels, so one row alone does not tell which columns of them there are.
    fields = dict.fromkeys(name for record in records for name in record.fields)
    columns = columns.spelled_as(fields)
    _check_mapping(path, fields, columns)
    _check_unread(records, columns)
    rows = [_row(number, record, columns) for number, record in enumerate(records, start=1)]
    _check_ids(rows)
    check_blank(rows)
    check_cells(path, rows)
    if columns.json_state is None:
        check_written(path, rows)
    if columns.questions is None:
        check_filled(rows)
    return rows


def read_questions(path: Path) -> dict[str, Any]:
    """Questions for every row: a JSON object of ids and questions.

    Raises:
        RequestError: The file cannot be read, or holds something else.
    """
    try:
        value = parse_document(utf8_of(path.read_bytes(), path), "the file")
    except OSError as error:
        raise file_error(path, f"cannot be read: {error.strerror or error}") from None
    except RequestError as error:
        raise in_row(str(path), error) from None
    if not isinstance(value, dict) or not value:
        raise file_error(path, "expected a JSON object of question ids and questions, with at least one")
    return value


def _check_mapping(path: Path, fields: Mapping[str, Any], columns: Columns) -> None:
    wanted = [*columns.state, *columns.labels.values(), *([columns.id] if columns.id else [])]
    if missing := [name for name in wanted if name not in fields]:
        msg = (
            f"has no column {missing[0]!r}; it has: {listed(map(visible, fields))}. Say which columns to use with "
            "--state-column, --id-column and --label QUESTION=COLUMN"
        )
        raise file_error(path, msg)
    if columns.questions is None and "questions" not in fields:
        raise file_error(path, "has no column 'questions'; give the questions for every row with --questions FILE")
    if columns.questions is not None and "questions" in fields:
        raise file_error(path, "has questions of its own in each row; leave out --questions, or rename that column")
    if columns.labels and "labels" in fields:
        raise file_error(path, "has labels of its own in each row; leave out --label, or rename that column")


def _check_unread(records: Sequence[Record], columns: Columns) -> None:
    """Refuse fields of a request that rows do not have: an answer without them would be another one's.

    Raises:
        RequestError: Such a field holds something.
    """
    for record in records:
        for name, hint in UNREAD.items():
            if record.fields.get(name) not in (None, "", [], {}) and name not in columns.state:
                raise row_error(record.place, (name,), f"is not read from rows; {hint}")


def _row(number: int, record: Record, columns: Columns) -> Row:
    fields = record.fields
    if columns.questions is None:
        questions = _object(record, "questions", fields["questions"])
        if not questions:
            raise row_error(record.place, ("questions",), "expected at least one question")
    else:
        questions = dict(columns.questions)
    if "labels" in fields:
        labels = _object(record, "labels", {} if fields["labels"] is None else fields["labels"])
    else:
        labels = {question: fields.get(column) for question, column in columns.labels.items()}
    # An empty CSV cell and a null both say that nobody labelled this one.
    labels = {question: label for question, label in labels.items() if label is not None and label != ""}
    if unknown := [question for question in labels if question not in questions]:
        msg = f"a label for a question that the row does not ask; it asks: {listed(questions)}"
        raise row_error(record.place, ("labels", unknown[0]), msg)
    id_column = columns.id or ("id" if "id" in fields else None)
    return Row(
        number=number,
        place=record.place,
        id=str(number) if id_column is None else _id(record, id_column),
        state=_state(record, columns.state, json_state=bool(columns.json_state)),
        questions=questions,
        labels=labels,
        fields=fields,
        named=id_column is not None,
    )


def _digest(value: Any) -> str:
    return hashlib.blake2b(compact(value).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _object(record: Record, name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        value = _parsed(record, (name,), value)
    if not isinstance(value, dict):
        raise row_error(record.place, (name,), "expected an object, or its JSON text")
    return value


def _parsed(record: Record, loc: Loc, text: str) -> Any:
    try:
        return parse_document(text.encode("utf-8", "surrogatepass"), "the text")
    except RequestError as error:
        raise row_error(record.place, loc, f"expected an object, or its JSON text: {error.problems[0].msg}") from None


def _state(record: Record, names: Sequence[str], *, json_state: bool) -> Any:
    if len(names) > 1:
        return {name: _cell(record, name, json_state) for name in names}
    state = _cell(record, names[0], json_state)
    if not isinstance(state, (str, dict, list)):
        error = mismatch("a string, an object or an array as the state", state)
        raise in_row(record.place, error.under(names[0]))
    return state


def _cell(record: Record, name: str, json_text: bool) -> Any:
    value = record.fields[name]
    if not (json_text and isinstance(value, str)):
        return value
    try:
        return parse_document(value.encode("utf-8", "surrogatepass"), "the text")
    except RequestError as error:
        raise in_row(record.place, error.under(name)) from None


def _id(record: Record, name: str) -> str:
    value = record.fields[name]
    if not isinstance(value, (str, int)) or isinstance(value, bool) or value == "":
        raise row_error(record.place, (name,), "expected a non-empty string or an integer as the row's id")
    return str(value)


def _check_ids(rows: Sequence[Row]) -> None:
    seen: dict[str, Row] = {}
    for row in rows:
        if row.id in seen:
            raise row_error(row.place, ("id",), f"the id {row.id!r} is that of {seen[row.id].place} too")
        seen[row.id] = row
