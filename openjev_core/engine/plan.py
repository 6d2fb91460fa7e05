"""What is read for a question: its type's readouts, held to the contract, and the orders their options are shown in."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from openjev_core.engine.request import Question, Request, Requests
from openjev_core.errors import InvalidQuestion, PluginError, RequestError
from openjev_core.orders import Orders, check_available, orders_of
from openjev_core.question import Option, QuestionType, Readout
from openjev_core.reader import PlannedReadout, PreparedQuestion, Reader, Session

MAX_CERTAIN = 1000
"""Readouts of one option in a question. They cost no tokens, so no other limit would end a type that asks for ever."""


@frozen
class Prepared:
    """A request, ready to be read.

    Attributes:
        session: Reads it.
        questions: Question id to what was prepared, in request order, without those whose type failed.
        failures: Question id to the error of its type; empty unless the request allows failures.
        seconds: How long preparing it took.
    """

    session: Session
    questions: Mapping[str, PreparedQuestion]
    failures: Mapping[str, PluginError]
    seconds: float

    @property
    def branches(self) -> int:
        """How many branches were prepared."""
        return sum([len(r.planned.orders) for question in self.questions.values() for r in question.readouts])


@frozen
class Planner:
    """Plans what is read for a request's questions, and has a session prepare it.

    Attributes:
        reader: Gives the sessions.
        requests: Keeps questions with what was prepared for them.
        max_answers: Options in a readout.
    """

    reader: Reader
    requests: Requests
    max_answers: int

    def prepare(self, request: Request) -> Prepared:
        """A session on the request's state, with every question's readouts. All limits are checked here.

        Raises:
            RequestError: The state, a question or a limit. Paths start at the body.
            PluginError: A question type broke its contract, and the request does not allow failures or has no other
                question.
        """
        started = time.perf_counter()
        session = self.reader.session(request.state)
        questions: dict[str, PreparedQuestion] = {}
        failures: dict[str, PluginError] = {}
        for question_id, question in request.questions.items():
            try:
                questions[question_id] = self._question(question, request.orders, session)
            except PluginError as error:
                if not request.partial:
                    raise
                failures[question_id] = error
            except RequestError as error:
                raise error.under("questions", question_id) from error
        if not questions:
            raise next(iter(failures.values()))
        if request.asks_for_orders:
            readouts = (readout.planned.readout for question in questions.values() for readout in question.readouts)
            check_available(request.orders, readouts)
        return Prepared(session, questions, failures, time.perf_counter() - started)

    def _question(self, question: Question, orders: Orders, session: Session) -> PreparedQuestion:
        """One question, from what was prepared for it earlier where that fits."""
        if question.failure is not None:
            raise question.failure
        earlier = question.prepared_in(orders)
        planned = plan(question.type, question.value, orders, self.max_answers)
        prepared = session.prepare(question.type, planned, earlier)
        if prepared is not earlier and question.written is not None:
            question.prepared = orders, prepared
            self.requests.keep(question)
        return prepared


def plan(
    question_type: QuestionType[Any, Any], question: Any, orders: Orders, max_answers: int
) -> Iterator[PlannedReadout]:
    """A question's readouts and the orders of their options, one readout at a time.

    Raises:
        RequestError: The question makes no sense, or asks for too few or too many options.
        PluginError: The type broke its contract.
    """
    found = certain = 0
    for readout in pull_readouts(question_type, question):
        check_readout(question_type, readout, max_answers)
        planned = PlannedReadout(readout, orders_of(readout, orders))
        certain += not planned.orders
        if certain > MAX_CERTAIN:
            msg = f"asks for more than {MAX_CERTAIN} readouts of one option, whose answers are certain"
            raise RequestError.at(readout.loc, msg, "option_count")
        yield planned
        found += 1
    if not found:
        raise PluginError(question_type.name, "readouts gave none")


def pull_readouts(question_type: QuestionType[Any, Any], question: Any) -> Iterator[Readout]:
    """A question's readouts, one by one, so that an endless generator ends at the token limit.

    Raises:
        InvalidQuestion: As the type raises it.
        PluginError: For anything else that it raises. Generators raise late, hence the guard around every pull.
    """
    try:
        yield from question_type.readouts(question)
    except (InvalidQuestion, GeneratorExit):
        raise
    except BaseException as error:
        # Also a SystemExit: passed on, it would end the server.
        raise PluginError(question_type.name, f"readouts raised {type(error).__name__}") from error


def check_readout(question_type: QuestionType[Any, Any], readout: object, max_answers: int | None) -> None:
    """Hold a readout to the contract.

    Args:
        question_type: Its type.
        readout: What the type gave.
        max_answers: How many options it may have; ``None`` where whoever answers has a limit of their own.

    Raises:
        RequestError: The question asks for too few or too many options.
        PluginError: The type's own fault.
    """
    name = question_type.name
    if not isinstance(readout, Readout):
        raise PluginError(name, f"readouts gave a {type(readout).__name__}, not a Readout")
    if not isinstance(readout.loc, tuple) or not all(isinstance(part, (str, int)) for part in readout.loc):
        raise PluginError(name, "a readout's loc is no tuple of field names and positions")
    if not isinstance(readout.text, str) or readout.text != readout.text.strip():
        raise PluginError(name, "a readout's text is no string without outer white space")
    if not isinstance(readout.options, tuple):
        raise PluginError(name, f"a readout's options are a {type(readout.options).__name__}, not a tuple of Option")
    if not all(isinstance(option, Option) and isinstance(option.text, str) for option in readout.options):
        raise PluginError(name, "a readout's options are not all Option records with a text")
    count = len(readout.options)
    if count < 1 or (max_answers is not None and count > max_answers):
        accepted = "1 or more options" if max_answers is None else f"1 to {max_answers} options (max_answers)"
        msg = f"a {name} question takes {accepted}, found {count}"
        raise RequestError.at(readout.loc, msg, "option_count")
    check_keys_and_labels(question_type, readout)


def check_keys_and_labels(question_type: QuestionType[Any, Any], readout: Readout) -> None:
    """Hold what tells a readout's options apart to the contract.

    Raises:
        PluginError: Two options share a key or label, or a label is not declared.
    """
    name, count = question_type.name, len(readout.options)
    try:
        keys = {option.key for option in readout.options}
    except TypeError:
        raise PluginError(name, "an option's key cannot be hashed") from None
    if len(keys) != count:
        raise PluginError(name, "two options of a readout have one key")
    own = [option.label for option in readout.options if option.label is not None]
    if not own:
        return
    if len(own) != count or len(set(own)) != count:
        raise PluginError(name, "a readout's options have own labels in part, or one label twice")
    if undeclared := sorted(set(own) - set(question_type.labels)):
        raise PluginError(name, f"a readout uses labels that the type does not declare: {', '.join(undeclared)}")
