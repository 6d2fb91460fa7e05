"""A request: a state and the questions about it, structured from a JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from attrs import define, field, frozen

from openjev_core.errors import MAX_PROBLEMS, PluginError, Problem, RequestError
from openjev_core.orders import Orders, check_calibrated, checked_orders
from openjev_core.plugins.problems import mismatch
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.prompts.state import MEDIA
from openjev_core.question import QuestionType
from openjev_core.reader import PreparedQuestion
from openjev_core.recent import ENTRY_BYTES, Recent, bytes_of

ALIAS = "jev-latest"

NO_MEDIA = "this server reads text only, no images, audio or video; leave the field out"

KEPT_BYTES = 16 * 1024 * 1024
"""Upper bound on what the questions that are kept hold: some thousand of them."""

MAX_MEMBERS = 10_000
"""Members of an array or object that is a field of a question. No server takes so many options, and each that a type
makes of them takes some hundred bytes until it is refused."""

KEPT_QUESTION_BYTES = 16 * 1024
"""JSON of a question that is worth keeping."""


@define
class Question:
    """A structured question. The same one comes again and again about ever new states, so it is kept for a while.

    Attributes:
        type: Its question type.
        value: An instance of ``type.question``; ``None`` where that class failed.
        written: Its JSON, by which it is found again; ``None`` when it is not kept.
        prepared: What was last prepared for it, with the number of orders; one pair, since several threads may look.
        failure: The error of its class, which is raised when the question is prepared; ``None`` where there is a value.
    """

    type: QuestionType[Any, Any]
    value: Any
    written: bytes | None = field(default=None, eq=False, repr=False)
    prepared: tuple[Orders, PreparedQuestion] | None = field(default=None, eq=False, repr=False)
    failure: PluginError | None = field(default=None, eq=False, repr=False)

    def prepared_in(self, orders: Orders) -> PreparedQuestion | None:
        """What was last prepared for it, if that was in so many orders."""
        return self.prepared[1] if self.prepared is not None and self.prepared[0] == orders else None


@frozen(kw_only=True)
class Request:
    """A structured request. The JSON document that it came from was valid in every field.

    Attributes:
        state: A string, object or array, as sent.
        questions: Question id to question, in request order; never empty.
        orders: How many orders to read each readout in.
        asks_for_orders: The request itself asked for these; otherwise they are the server's setting.
        partial: Answer the other questions when a question type fails.
        detail: Answers tell what was read in each order.
    """

    state: str | dict[str, Any] | list[Any]
    questions: Mapping[str, Question]
    orders: Orders
    asks_for_orders: bool
    partial: bool
    detail: bool

    @property
    def types(self) -> dict[str, str]:
        """Question id to the name of its type, in request order."""
        return {question_id: question.type.name for question_id, question in self.questions.items()}


@frozen
class Requests:
    """Structures requests for one served model.

    Attributes:
        converter: Structures questions.
        served: The model's public names.
        max_questions: Questions in a request.
        orders: How many orders to read where a request does not say.
        calibrated: A calibration is applied, which was fitted for ``orders``.
        lasting: Names of question types whose questions never change and whose functions depend on nothing else: the
            same JSON gives the same question, with what was prepared for it, for as long as it is kept.
    """

    converter: QuestionConverter
    served: Sequence[str]
    max_questions: int
    orders: Orders = 1
    calibrated: bool = False
    lasting: frozenset[str] = frozenset()
    _kept: Recent[bytes, Question] = field(factory=lambda: Recent(KEPT_BYTES), repr=False)

    def structure(self, document: Any) -> Request:
        """Structure a request.

        Args:
            document: The parsed body. Unknown top-level fields are ignored, unless they carry media.

        Raises:
            RequestError: The problems found, each with its path from the body's root; no more than are shown.
        """
        if not isinstance(document, dict):
            raise mismatch("an object with model, state and questions", document)
        required = ("model", "state", "questions")
        problems = [Problem((n,), "missing; this field is required", "missing") for n in required if n not in document]
        problems += [Problem((n,), NO_MEDIA, "unsupported_content") for n in MEDIA if document.get(n)]
        parts = {
            "model": self._model,
            "state": _state,
            "questions": self._questions,
            "x_orders": self._orders,
            "x_partial": _switch,
            "x_detail": _switch,
        }
        values: dict[str, Any] = {}
        for name, part in parts.items():
            if name not in document or (name.startswith("x_") and document[name] is None):
                continue
            try:
                values[name] = part(document[name])
            except RequestError as error:
                problems.extend(error.under(name).problems)
        if problems:
            raise RequestError(problems)
        return Request(
            state=values["state"],
            questions=values["questions"],
            orders=values.get("x_orders", self.orders),
            asks_for_orders="x_orders" in values,
            partial=values.get("x_partial", False),
            detail=values.get("x_detail", False),
        )

    def keep(self, question: Question) -> None:
        """Keep a question, with what was prepared for it, for requests to come."""
        if question.written is not None:
            size = ENTRY_BYTES + bytes_of(question.written, question.value, question.prepared)
            self._kept.keep(question.written, question, size)

    def _model(self, model: Any) -> None:
        if not isinstance(model, str):
            raise mismatch("a string", model)
        if model not in self.served and not model.startswith("jev-"):
            served = ", ".join(map(repr, self.served))
            msg = f"unknown model {model[:80]!r}; served: {served}, also as {ALIAS!r} or any 'jev-...' version"
            raise RequestError.at((), msg, "unknown_model")

    def _orders(self, orders: Any) -> Orders:
        try:
            checked = checked_orders(orders)
        except ValueError as error:
            raise RequestError.at((), f"expected {error}") from None
        if self.calibrated:
            check_calibrated(checked, self.orders)
        return checked

    def _questions(self, questions: Any) -> Mapping[str, Question]:
        if not isinstance(questions, dict):
            raise mismatch("an object of question ids and questions", questions)
        if not 1 <= len(questions) <= self.max_questions:
            msg = f"a request takes 1 to {self.max_questions} questions (max_questions), found {len(questions)}"
            raise RequestError.at((), msg, "question_count")
        structured: dict[str, Question] = {}
        problems: list[Problem] = []
        for question_id, data in questions.items():
            if not question_id:
                problems.append(Problem((question_id,), "a question id must be a non-empty string"))
                continue
            try:
                structured[question_id] = self._question(data)
            except RequestError as error:
                problems.extend(error.under(question_id).problems)
                if len(problems) > MAX_PROBLEMS:
                    break
        if problems:
            raise RequestError(problems)
        return structured

    def _question(self, data: Any) -> Question:
        name = data.get("type") if isinstance(data, dict) else None
        lasts = isinstance(name, str) and name in self.lasting
        written = written_within(data, KEPT_QUESTION_BYTES) if lasts else None
        if written is not None and (known := self._kept.get(written)) is not None:
            return known
        for field_name, value in data.items() if isinstance(data, dict) else ():
            if isinstance(value, (list, dict)) and len(value) > MAX_MEMBERS:
                msg = f"has {len(value)} members; a field of a question takes at most {MAX_MEMBERS}"
                raise RequestError.at((field_name,), msg, "too_long")
        try:
            question_type, value = self.converter.question(data)
        except PluginError as error:
            return Question(self.converter.types[error.type_name], None, failure=error)
        return Question(question_type, value, written)


def is_small(state: Any, nodes: int, characters: int) -> bool:
    """Whether a state has no more values and no more characters than these. Looks no further than it has to."""
    waiting = [state]
    while waiting:
        value = waiting.pop()
        nodes -= 1
        if isinstance(value, str):
            characters -= len(value)
        elif isinstance(value, (dict, list)):
            if len(value) > nodes:
                return False
            waiting.extend(value)
            waiting.extend(value.values() if isinstance(value, dict) else ())
        if nodes < 0 or characters < 0:
            return False
    return True


def written_within(value: Any, limit: int) -> bytes | None:
    """JSON by which a parsed value is recognised; ``None`` where it is longer than ``limit`` or cannot be written."""
    try:
        written = orjson.dumps(value)
    except TypeError:  # an integer of more than 64 bits
        return None
    return written if len(written) <= limit else None


def _state(state: Any) -> str | dict[str, Any] | list[Any]:
    if not isinstance(state, (str, dict, list)):
        raise mismatch("a string, an object or an array", state)
    return state


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise mismatch("true or false", value)
    return value
