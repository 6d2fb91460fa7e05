"""What a file of rows leaves uncertain: refused with the way to say what is meant, since either guess may be wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from openjev_core.datasets.places import file_error, in_row, raise_all, row_error
from openjev_core.errors import Loc, Problem, RequestError
from openjev_core.json_document import parse_document

if TYPE_CHECKING:
    from pathlib import Path

    from openjev_core.datasets.rows import Row


SHEET_ERRORS = frozenset("#N/A #REF! #VALUE! #NAME? #DIV/0! #NULL! #NUM! #SPILL! #CALC!".split())  # noqa: SIM905 - one line
"""What spreadsheets show in place of a value that they could not work out."""

MOST_IN_CELL = 32_767
"""Characters of a cell beyond which Excel cuts without a word."""

PYTHON_TEXT = re.compile(r"\s*(\[\s*'.*\]|\[\s*\{\s*'.*\]|\{\s*'.*\})\s*", re.DOTALL)
"""How Python writes a list of texts or of dicts, and a dict. numpy leaves out the commas between them."""

SPACED_QUOTES = re.compile(r'\s+".*"\s*', re.DOTALL)
"""A cell of CSV whose quotes stand behind a space, which makes them part of the text."""


def check_cells(path: Path, rows: Sequence[Row]) -> None:
    """Refuse states that a spreadsheet spoiled.

    Raises:
        RequestError: With every row whose state, or a part of it, is a spreadsheet's error or is as long as the longest
            cell that Excel keeps.
    """
    table = path.suffix.lower() in (".csv", ".tsv")
    problems: list[Problem] = []
    for row in rows:
        for text in row.state.values() if isinstance(row.state, dict) else [row.state]:
            if not isinstance(text, str):
                continue
            if text in SHEET_ERRORS:
                msg = f"the spreadsheet's error {text}, and no text; mend the formula, or remove the row"
            elif table and len(text) == MOST_IN_CELL:
                msg = (
                    f"exactly {MOST_IN_CELL:,} characters, where Excel cuts a cell without a word; take the text from "
                    "its source, or store the rows as JSON lines"
                )
            else:
                continue
            problems += row_error(row.place, (), f"the state holds {msg}").problems
    raise_all(problems)


def check_blank(rows: Sequence[Row]) -> None:
    """Refuse rows without a state. An empty cell is how a table says that a value is missing.

    Raises:
        RequestError: With every such row.
    """
    msg = "the state is blank, and an answer about nothing looks like any other; remove the row"
    blank = [row_error(row.place, (), msg) for row in rows if _is_blank(row.state)]
    raise_all([problem for error in blank for problem in error.problems])


def check_written(path: Path, rows: Sequence[Row]) -> None:
    """Refuse a file in which every state is a text that a program wrote for another value.

    A chat is read as one turn after another, and its JSON text as one text: two prompts, and two answers.

    Raises:
        RequestError: It is such a file.
    """
    kinds: tuple[tuple[Callable[[str], object], str, str], ...] = (
        (_is_json, "JSON text", "say with --state-json that it is to be read as JSON (a chat as turns)"),
        (
            PYTHON_TEXT.fullmatch,
            "a list or dict as Python writes it, which is what pandas puts into CSV",
            "write the column with json.dumps and say --state-json",
        ),
        (
            SPACED_QUOTES.fullmatch,
            "a text in quotes behind a space, where CSV takes the quotes for a part of the text",
            "remove the space after each delimiter",
        ),
    )
    for fits, what, way in kinds:
        if all(isinstance(row.state, str) and fits(row.state) for row in rows):
            text = "say with --state-text that the model is to read it as the text that it is"
            raise file_error(path, f"every state is {what}; {way}, or {text}")


def check_filled(rows: Sequence[Row]) -> None:
    """Refuse nulls in questions that a program may have filled in for fields that other rows have.

    Programs that keep tables in columns write JSON lines in which every row has the fields of all rows. An option that
    is null is an option, so such a row would ask another question. It is recognised by an object that has the same
    fields in every row, of which one is null here and not null there.

    Raises:
        RequestError: A row has such a null. Names its place.
    """
    fields: dict[Loc, frozenset[str]] = {}
    filled: dict[Loc, set[str]] = {}
    differing: set[Loc] = set()
    for row in rows:
        for loc, value in _objects(row.questions, ()):
            if fields.setdefault(loc, frozenset(value)) != value.keys():
                differing.add(loc)
            filled.setdefault(loc, set()).update(name for name, child in value.items() if child is not None)
    for row in rows:
        for loc, value in _objects(row.questions, ()):
            for name, child in value.items():
                if child is None and name in filled[loc] and loc not in differing:
                    msg = (
                        "is null here and not in other rows, and all rows have the same fields, as programs write them "
                        "that fill in the fields of other rows; leave out what this row does not have, or write its "
                        "questions as JSON text"
                    )
                    raise in_row(row.place, RequestError.at(("questions", *loc, name), msg))


def _objects(value: Any, loc: Loc) -> Iterator[tuple[Loc, Mapping[str, Any]]]:
    """The objects in a value that is an object, with their paths."""
    if isinstance(value, Mapping):
        yield loc, value
        for name, child in value.items():
            yield from _objects(child, (*loc, name))


def _is_blank(state: Any) -> bool:
    if isinstance(state, dict):
        return bool(state) and all(isinstance(value, str) and not value.strip() for value in state.values())
    return isinstance(state, str) and not state.strip()


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        parse_document(text.encode("utf-8", "surrogatepass"))
    except RequestError:
        return False
    return True
