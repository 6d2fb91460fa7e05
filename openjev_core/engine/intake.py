"""From a JSON document to a structured request: the envelope of the wire contract."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, cast

from attrs import field, frozen

from openjev_core.engine.evaluation import Request
from openjev_core.errors import Problem, RequestError
from openjev_core.plugins.problems import mismatch
from openjev_core.plugins.structuring import KNOWN_BYTES, Asked, QuestionConverter, written_within
from openjev_core.recent import Recent

ALIAS = "jev-latest"

KNOWN_SET_BYTES = 64 * 1024
"""JSON of a request's questions that are worth keeping together: some hundred."""


@frozen
class Intake:
    """Structures requests for one served model."""

    converter: QuestionConverter
    served: str
    max_questions: int
    _known: Recent[bytes, Mapping[str, Asked]] = field(factory=lambda: Recent(KNOWN_BYTES), repr=False)

    def structure(self, document: Any, size: int | None = None) -> Request:
        """Structure a request.

        Args:
            document: The parsed body. Unknown top-level fields are ignored.
            size: Bytes of the body.

        Raises:
            RequestError: Every problem found, each with its path from the body's root.
        """
        if not isinstance(document, dict):
            raise mismatch("an object with model, state and questions", document)
        required = ("model", "state", "questions")
        problems = [Problem((n,), "missing; this field is required", "missing") for n in required if n not in document]
        parts = {
            "model": self._model,
            "state": _state,
            "questions": self._questions,
            "x_orders": _orders,
            "x_partial": _partial,
        }
        values: dict[str, Any] = {}
        for name, part in parts.items():
            if name not in document:
                continue
            try:
                values[name] = part(document[name])
            except RequestError as error:
                problems.extend(error.under(name).problems)
        if problems:
            raise RequestError(problems)
        return Request(
            model=values["model"],
            state=values["state"],
            questions=values["questions"],
            orders=values.get("x_orders"),
            partial=values.get("x_partial", False),
            size=size,
        )

    def _model(self, model: Any) -> str:
        if not isinstance(model, str):
            raise mismatch("a string", model)
        if model not in (self.served, ALIAS) and not model.startswith("jev-"):
            msg = f"unknown model {model[:80]!r}; served: {self.served!r}, also as {ALIAS!r} or any 'jev-...' version"
            raise RequestError.at((), msg, "unknown_model")
        return model

    def _questions(self, questions: Any) -> Mapping[str, Asked]:
        if not isinstance(questions, dict):
            raise mismatch("an object of question ids and questions", questions)
        if not 1 <= len(questions) <= self.max_questions:
            msg = f"a request takes 1 to {self.max_questions} questions (max_questions), found {len(questions)}"
            raise RequestError.at((), msg, "question_count")
        written = written_within(questions, KNOWN_SET_BYTES)
        if written is not None and (known := self._known.get(written)) is not None:
            return known
        asked: dict[str, Asked] = {}
        problems: list[Problem] = []
        for question_id, data in questions.items():
            if not question_id:
                problems.append(Problem((question_id,), "a question id must be a non-empty string"))
                continue
            try:
                asked[question_id] = self.converter.question(data)
            except RequestError as error:
                problems.extend(error.under(question_id).problems)
        if problems:
            raise RequestError(problems)
        structured = MappingProxyType(asked)
        if written is not None and all(map(self.converter.lasts, asked.values())):
            self._known.keep(written, structured, len(written))
        return structured


def _state(state: Any) -> str | dict[str, Any] | list[Any]:
    if not isinstance(state, (str, dict, list)):
        raise mismatch("a string, an object or an array", state)
    return state


def _orders(orders: Any) -> int | Literal["full", "adaptive"]:
    if orders in ("full", "adaptive") or (type(orders) is int and orders >= 1):
        return cast('int | Literal["full", "adaptive"]', orders)
    raise RequestError.at((), 'expected an integer from 1 up, "full" or "adaptive"')


def _partial(partial: Any) -> bool:
    if not isinstance(partial, bool):
        raise mismatch("true or false", partial)
    return partial
