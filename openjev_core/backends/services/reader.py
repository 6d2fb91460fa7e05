"""Reading readouts with a service that answers questions by itself: each order of a readout is a question of a call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast

from attrs import define, field, frozen

from openjev_core.backends.services.asked import AskedReadout, ServiceQuestion, ServiceReadout, asked_as
from openjev_core.backends.services.client import ServiceClient
from openjev_core.backends.services.wire import Answered
from openjev_core.errors import RequestError
from openjev_core.json_document import compact
from openjev_core.question import QuestionType
from openjev_core.reader import OrderReading, PlannedReadout, PreparedQuestion, Usage

MAX_READS = 4096
"""Orders of readouts in a request: what ends a type that asks for ever, where no tokens are counted. 64 questions of 64
orders are as many."""

ROOM_AROUND = 256
"""Bytes of a call beside its state and its questions, and of each question beside its content."""


@frozen
class ServiceLimits:
    """What a service takes in one call.

    Attributes:
        questions: Questions.
        body_bytes: Bytes of the body.
        calls: Calls at once, over all evaluations.
    """

    questions: int
    body_bytes: int
    calls: int


@define(eq=False)
class ServiceReader:
    """A service, as a :class:`openjev_core.reader.Reader`.

    Attributes:
        client: Calls it.
        limits: What it takes.
        slots: Calls that may be made now.
    """

    client: ServiceClient
    limits: ServiceLimits
    slots: asyncio.Semaphore = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.slots = asyncio.Semaphore(self.limits.calls)

    def session(self, state: str | dict[str, Any] | list[Any]) -> ServiceSession:
        """See :meth:`openjev_core.reader.Reader.session`."""
        room = self.limits.body_bytes - len(compact(state).encode()) - ROOM_AROUND
        if room <= 0:
            msg = f"the service takes {self.limits.body_bytes} bytes in a call, and the state alone has more"
            raise RequestError.at(("state",), msg, "too_long")
        return ServiceSession(self, state, room)


@define(eq=False)
class ServiceSession:
    """A state that a service is asked about: a :class:`openjev_core.reader.Session`.

    Attributes:
        reader: Its reader.
        state: As the client sent it.
        room: Bytes of a call that are left for questions.
        waited, prefill, reading: Seconds; see :class:`openjev_core.reader.Session`. A service
            says nothing of the second.
    """

    reader: ServiceReader
    state: str | dict[str, Any] | list[Any]
    room: int
    waited: float = field(default=0.0, init=False)
    prefill: float = field(default=0.0, init=False)
    reading: float = field(default=0.0, init=False)
    _prepared: int = field(default=0, init=False)
    _answered: list[tuple[int, Answered]] = field(factory=list, init=False)

    def prepare(
        self,
        question_type: QuestionType[Any, Any],
        readouts: Iterable[PlannedReadout],
        earlier: PreparedQuestion | None = None,
        question: Any = None,
    ) -> ServiceQuestion:
        """See :meth:`openjev_core.reader.Session.prepare`."""
        known = cast("ServiceQuestion | None", earlier)
        count, prepared = self._prepared, []
        made = ((one.planned, one.asked) for one in known.readouts) if known is not None else None
        for planned, asked in made or asked_of(question_type, readouts, question):
            count += len(asked)
            if count > MAX_READS:
                msg = f"asks the service more than {MAX_READS} times; ask fewer questions, or for fewer orders"
                raise RequestError.at(planned.readout.loc, msg, "too_long")
            if asked and (size := max(one.size for one in asked) + ROOM_AROUND) > self.room:
                msg = (
                    f"the question has {size} bytes, and a call to the service has room for {self.room} beside the "
                    f"state ({self.reader.limits.body_bytes} in all)"
                )
                raise RequestError.at(planned.readout.loc, msg, "too_long")
            prepared.append(ServiceReadout(planned, asked))
        self._prepared = count
        return known if known is not None else ServiceQuestion(tuple(prepared))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    async def read(self, questions: Sequence[PreparedQuestion]) -> list[list[list[OrderReading]]]:
        """See :meth:`openjev_core.reader.Session.read`. Calls run at the same time; one that fails ends the others."""
        started = time.perf_counter()
        begun: list[float] = []
        readouts = [cast("ServiceQuestion", question).readouts for question in questions]
        asked = [one for of_question in readouts for readout in of_question for one in readout.asked]
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(self._ask(call, begun)) for call in self._calls(asked)]
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        found = iter([reading for task in running for reading in task.result()])
        first = min(begun, default=started)
        self.waited += first - started
        self.reading += time.perf_counter() - first
        return [[[next(found) for _ in readout.asked] for readout in of_question] for of_question in readouts]

    def _calls(self, asked: Sequence[AskedReadout]) -> Iterator[Sequence[AskedReadout]]:
        """The readouts, divided into calls that the service takes."""
        call: list[AskedReadout] = []
        room = self.room
        for one in asked:
            if call and (len(call) == self.reader.limits.questions or one.size + ROOM_AROUND > room):
                yield call
                call, room = [], self.room
            call.append(one)
            room -= one.size + ROOM_AROUND
        if call:
            yield call

    async def _ask(self, asked: Sequence[AskedReadout], begun: list[float]) -> Sequence[OrderReading]:
        async with self.reader.slots:
            begun.append(time.perf_counter())
            answered = await self.reader.client.ask(self.state, asked)
        self._answered.append((len(asked), answered))
        return answered.readings

    @property
    def usage(self) -> Usage:
        """See :attr:`openjev_core.reader.Session.usage`. What the service's questions share, it does not say."""
        hits = [answered.cached_tokens for _, answered in self._answered]
        known = [hit for hit in hits if hit is not None]
        return Usage(
            input_tokens=sum([answered.input_tokens for _, answered in self._answered]),
            output_tokens=sum([answered.output_tokens for _, answered in self._answered]),
            prefix_tokens=0,
            branches=sum([count for count, _ in self._answered]),
            cached_tokens=sum(known) if hits and len(known) == len(hits) else None,
        )

    def shown(self, questions: Mapping[str, PreparedQuestion]) -> dict[str, Any]:
        """See :meth:`openjev_core.reader.Session.shown`: what is sent; tokens are the service's own affair."""
        return {
            "prefix": self.state if isinstance(self.state, str) else compact(self.state),
            "prefix_tokens": [],
            "branches": [
                {
                    "question_id": question_id,
                    "readout": index,
                    "labels": {
                        label: option.text
                        for label, option in zip(asked.labels, readout.planned.readout.options, strict=True)
                    },
                    "prompt": compact(asked.body),
                    "tokens": [],
                }
                for question_id, question in questions.items()
                for index, readout in enumerate(cast("ServiceQuestion", question).readouts)
                for asked in readout.asked
            ],
        }


def asked_of(
    question_type: QuestionType[Any, Any], readouts: Iterable[PlannedReadout], question: Any
) -> Iterator[tuple[PlannedReadout, tuple[AskedReadout, ...]]]:
    """Each readout, with what a service is asked for its orders."""
    for planned in readouts:
        asked = [asked_as(planned.readout, order, question_type, question) for order in planned.orders]
        yield planned, tuple(asked)
