"""The questions and labels of every row, checked before the first row is answered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from attrs import frozen

from openjev_core.datasets.places import in_row, raise_all, row_error
from openjev_core.datasets.rows import Row
from openjev_core.datasets.shapes import Shape, shape_of
from openjev_core.datasets.targets import TargetShape
from openjev_core.errors import Problem, RequestError
from openjev_core.json_document import compact
from openjev_core.plugins.structuring import QuestionConverter


@frozen(kw_only=True)
class CheckedQuestion:
    """A valid question of a row, and its label.

    Attributes:
        wire: The question as on the wire.
        shape: How its labels and answers are read.
        label: The right outcome; ``None`` for a question without a label.
    """

    wire: Any
    shape: Shape | TargetShape
    label: int | None


CheckedRows = Mapping[int, Mapping[str, CheckedQuestion]]
"""Row number to the row's questions by id."""


def check_rows(rows: Sequence[Row], converter: QuestionConverter, *, labelled: bool) -> CheckedRows:
    """Check the questions and labels of all rows.

    Args:
        rows: The rows to check; never empty.
        converter: Structures questions by the installed types.
        labelled: Whether at least one label is needed.

    Raises:
        RequestError: A question is not valid, an id stands for questions of two types, a label fits no option, or no
            question has a label although one is needed. Names rows and fields, up to a fixed number of them.
        PluginError: A question type broke its contract.
    """
    shapes = Shapes(converter)
    checked: dict[int, dict[str, CheckedQuestion]] = {}
    problems: list[Problem] = []
    for row in rows:
        questions = checked.setdefault(row.number, {})
        for question_id, wire in row.questions.items():
            try:
                questions[question_id] = shapes.check(row, question_id, wire)
            except RequestError as error:
                problems.extend(error.problems)
    raise_all(problems)
    if labelled and all(q.label is None for questions in checked.values() for q in questions.values()):
        msg = "no question has a label; give `labels` in each row, or their columns with --label QUESTION=COLUMN"
        raise row_error(rows[0].place, ("labels",), msg)
    return checked


def check_questions(
    rows: Sequence[Row], converter: QuestionConverter, *, known: Collection[str] | None = None
) -> Mapping[int, Mapping[str, Shape | TargetShape]]:
    """Check the questions of rows that have no labels, and tell the shapes of those that were checked, by row and id.

    Args:
        rows: The rows to check.
        converter: Structures questions by the installed types.
        known: Check only questions of these types; of all types when ``None``.

    Raises:
        RequestError: As for :func:`check_rows`.
    """
    shapes = Shapes(converter)
    found: dict[int, dict[str, Shape | TargetShape]] = {}
    problems: list[Problem] = []
    for row in rows:
        of_row = found.setdefault(row.number, {})
        for question_id, wire in row.questions.items():
            named = wire.get("type") if isinstance(wire, dict) else None
            if known is not None and isinstance(named, str) and named not in known:
                continue
            try:
                of_row[question_id] = shapes.check_question(row, question_id, wire)
            except RequestError as error:
                problems.extend(error.problems)
    raise_all(problems)
    return found


class Shapes:
    """The shape of each different question, and the type that every question id stands for."""

    def __init__(self, converter: QuestionConverter) -> None:
        self._converter = converter
        self._known: dict[str, Shape | TargetShape | RequestError] = {}
        self._types: dict[str, tuple[str, str]] = {}

    def check(self, row: Row, question_id: str, wire: Any) -> CheckedQuestion:
        """Check one question of a row and its label.

        Raises:
            RequestError: The question is not valid, or the label fits no option.
        """
        shape = self.check_question(row, question_id, wire)
        if question_id not in row.labels:
            return CheckedQuestion(wire=wire, shape=shape, label=None)
        try:
            label = shape.outcome_of(row.labels[question_id])
        except RequestError as error:
            raise in_row(row.place, error.under("labels", question_id)) from None
        return CheckedQuestion(wire=wire, shape=shape, label=label)

    def check_question(self, row: Row, question_id: str, wire: Any) -> Shape | TargetShape:
        """Check one question of a row.

        Raises:
            RequestError: The question is not valid, or its id stood for a question of another type before.
        """
        shape = self._shape(wire)
        if isinstance(shape, RequestError):
            raise in_row(row.place, shape.under("questions", question_id))
        type_name, place = self._types.setdefault(question_id, (shape.type, row.place))
        if type_name != shape.type:
            msg = f"is a {shape.type} here and a {type_name} in {place}; one id must stand for one type throughout"
            raise row_error(row.place, ("questions", question_id, "type"), msg)
        return shape

    def _shape(self, wire: Any) -> Shape | TargetShape | RequestError:
        # Most data sets ask the same questions of every row.
        written = compact(wire)
        if written not in self._known:
            try:
                self._known[written] = shape_of(wire, self._converter)
            except RequestError as error:
                self._known[written] = error
        return self._known[written]
