"""What is read for a question: its type's readouts, held to the contract, and the orders their options are shown in.

It is read in rounds: one, unless a type waits for distributions before it asks on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import frozen

from openjev_core.engine.asking import Asking
from openjev_core.engine.request import Question, Request, Requests
from openjev_core.errors import PluginError, Problem, RequestError
from openjev_core.orders import Orders, check_available, orders_of
from openjev_core.question import Distribution, Option, QuestionType, Readout
from openjev_core.reader import PlannedReadout, PreparedQuestion, Reader, Session

MAX_CERTAIN = 1000
"""Readouts of one option in a question. They cost no tokens, so no other limit would end a type that asks for ever."""


@frozen
class Prepared:
    """A round of a request, ready to be read.

    Attributes:
        session: Reads it.
        questions: Question id to what was prepared, in request order; without those whose type failed or asks no more.
        asking: Question id to its readouts, where the type waits for some of this round's before it asks on.
        failures: Question id to the error of its type; empty unless the request allows failures.
        seconds: How long preparing took, that of the rounds before included.
    """

    session: Session
    questions: Mapping[str, PreparedQuestion]
    asking: Mapping[str, Asking]
    failures: Mapping[str, PluginError]
    seconds: float

    @property
    def branches(self) -> int:
        """How many branches were prepared."""
        return sum([len(r.planned.orders) for question in self.questions.values() for r in question.readouts])

    def close(self) -> None:
        """End what still waits. Runs the types' code, which may hang."""
        for asking in self.asking.values():
            asking.close()


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
        """A session on the request's state, with the first round of every question. All limits are checked here.

        Raises:
            RequestError: The state, a question or a limit. Paths start at the body.
            PluginError: A question type broke its contract, and the request does not allow failures or has no other
                question.
        """
        started = time.perf_counter()
        session = self.reader.session(request.state)
        asking = {name: Asking(question.type, question.value) for name, question in request.questions.items()}
        prepared = self.ask_on(request, Prepared(session, {}, asking, {}, time.perf_counter() - started), {})
        if request.asks_for_orders and not prepared.asking:
            readouts = (one.planned.readout for question in prepared.questions.values() for one in question.readouts)
            check_available(request.orders, readouts)
        return prepared

    def ask_on(
        self, request: Request, before: Prepared, distributions: Mapping[str, Sequence[Distribution]]
    ) -> Prepared:
        """The round that follows one that was read, on the same session.

        Args:
            request: What is asked.
            before: The round that was read.
            distributions: Question id to those that its type waits for.

        Raises:
            RequestError: As for the first round; a limit also says how far the type came.
            PluginError: As for the first round.
        """
        started = time.perf_counter()
        questions: dict[str, PreparedQuestion] = {}
        failures = dict(before.failures)
        with closed_on_error(before):
            for name, asking in before.asking.items():
                question, found = request.questions[name], distributions.get(name, ())
                try:
                    prepared = self._question(question, asking, request.orders, before.session, found)
                except PluginError as error:
                    asking.close()
                    if not request.partial:
                        raise
                    failures[name] = error
                except RequestError as error:
                    raise error.under("questions", name) from error
                else:
                    if prepared.readouts:
                        questions[name] = prepared
            if len(failures) == len(request.questions):
                raise next(iter(failures.values()))
        waiting = {name: asking for name, asking in before.asking.items() if name in questions and asking.waits}
        seconds = before.seconds + time.perf_counter() - started
        return Prepared(before.session, questions, waiting, failures, seconds)

    def _question(
        self,
        question: Question,
        asking: Asking,
        orders: Orders,
        session: Session,
        distributions: Sequence[Distribution],
    ) -> PreparedQuestion:
        """One question's next round, the first from what was prepared for it earlier where that fits."""
        if question.failure is not None:
            raise question.failure
        earlier = question.prepared_in(orders) if not distributions else None
        asked = asking.readouts
        try:
            prepared = session.prepare(question.type, plan(asking, orders, self.max_answers, distributions), earlier)
        except RequestError as error:
            if not distributions:
                raise
            raise so_far(error, asking.rounds - 1, asked) from error
        if prepared is not earlier and question.written is not None and not distributions and not asking.waits:
            question.prepared = orders, prepared
            self.requests.keep(question)
        return prepared


@contextmanager
def closed_on_error(prepared: Prepared) -> Iterator[None]:
    """Close what waits when the block fails: here, where a type's code may run, and not where the error is dropped."""
    try:
        yield
    except BaseException:
        prepared.close()
        raise


def plan(
    asking: Asking, orders: Orders, max_answers: int, distributions: Sequence[Distribution] = ()
) -> Iterator[PlannedReadout]:
    """A question's next round of readouts and the orders of their options, one readout at a time.

    Args:
        asking: Gives them.
        orders: How many orders each is read in.
        max_answers: Options in a readout.
        distributions: Those that the type waits for; none in the first round.

    Raises:
        RequestError: The question makes no sense, or asks for too few or too many options.
        PluginError: The type broke its contract.
    """
    for readout in asking.pull(distributions):
        check_readout(asking.type, readout, max_answers)
        planned = PlannedReadout(readout, orders_of(readout, orders))
        asking.certain += not planned.orders
        if asking.certain > MAX_CERTAIN:
            msg = f"asks for more than {MAX_CERTAIN} readouts of one option, whose answers are certain"
            raise RequestError.at(readout.loc, msg, "option_count")
        yield planned
    if not asking.readouts:
        raise PluginError(asking.type.name, "readouts gave none")


def so_far(error: RequestError, rounds: int, readouts: int) -> RequestError:
    """The same problems, each with how far a type that asks on had come."""
    came = f"; the question had asked {readouts} readouts in {rounds} round{'s' * (rounds != 1)} before"
    return RequestError([Problem(problem.loc, problem.msg + came, problem.type) for problem in error.problems])


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
        rule = f"readouts gave a {type(readout).__name__}, not a Readout or a sequence of them"
        raise PluginError(name, rule)
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
