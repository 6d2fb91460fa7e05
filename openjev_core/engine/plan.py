"""What is read for a question: its type's readouts, held to the contract, and the orders their options are shown in.

It is read in rounds: one, unless a type waits for distributions before it asks on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from attrs import frozen

from openjev_core.asking import Asking
from openjev_core.engine.request import Question, Request, Requests
from openjev_core.errors import PluginError, Problem, RequestError
from openjev_core.orders import Orders, check_available, orders_of
from openjev_core.question import Distribution
from openjev_core.reader import PlannedReadout, PreparedQuestion, Reader, Session, contract_kept

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
        """Close the generators of types that wait for distributions. This runs the types' code, which may hang."""
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
        with contract_kept("opening a session"):
            session = self.reader.session(request.state)
        asking = {
            name: Asking(question.type, question.value, self.max_answers)
            for name, question in request.questions.items()
        }
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
            planned = plan(asking, orders, distributions)
            with contract_kept("preparing"):
                prepared = session.prepare(question.type, planned, earlier, question.value)
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
    """Close the generators when the block fails; Python would do it on whatever thread drops the error."""
    try:
        yield
    except BaseException:
        prepared.close()
        raise


def plan(asking: Asking, orders: Orders, distributions: Sequence[Distribution] = ()) -> Iterator[PlannedReadout]:
    """A question's next round of readouts and the orders of their options, one readout at a time.

    Args:
        asking: Gives them.
        orders: How many orders each is read in.
        distributions: Those that the type waits for; none in the first round.

    Raises:
        RequestError: The question makes no sense, or asks for too few or too many options.
        PluginError: The type broke its contract.
    """
    for readout in asking.pull(distributions):
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
    asked, read = (f"{count} {what}{'s' * (count != 1)}" for count, what in ((readouts, "readout"), (rounds, "round")))
    came = f"; the question had asked {asked} in {read} before"
    return RequestError([Problem(problem.loc, problem.msg + came, problem.type) for problem in error.problems])
