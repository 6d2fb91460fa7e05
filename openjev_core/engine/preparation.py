"""Structuring and preparing requests: on the event loop where that is quick, in a thread where it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import frozen

from openjev_core.engine.plan import Planner, Prepared
from openjev_core.engine.request import Request, Requests, is_small
from openjev_core.engine.threads import Threads
from openjev_core.errors import BodyTooLarge
from openjev_core.question import Distribution

SHORT_BODY = 64 * 1024
SHORT_SEPARATORS = 1000
"""Bytes of a body, and brackets and commas in it, up to which structuring it takes some milliseconds at most."""

SHORT_STATE = 16 * 1024
SHORT_NODES = 64
SHORT_QUESTIONS = 16 * 1024
"""Characters of a state, values in it, and bytes of the questions up to which preparing them, in one order of their
options, takes some milliseconds at most."""

HEAVY_BODY = 512 * 1024
HEAVY_SEPARATORS = 20_000
"""Bytes of a body, and brackets and commas in it, above which it is heavy."""

HEAVY_AT_ONCE = 2
"""Heavy bodies that are worked on at once, and, where no third party's code can hang, all that is not short. Each
thread competes with the event loop for Python's lock, and takes its share of memory: 16 states of 500,000 spaces, 600
bytes of gzip each, took 1 GB when they were tokenized together."""

MOST_SEPARATORS = 50_000
"""Brackets and commas that a body may have, or as many as tokens in a branch where these are more: a branch has fewer.
A million in 2 MB, from 2 KB of gzip, take 100 MB and hold Python's lock for a second and more: its parser does not let
go of it, and its collector goes through what is there again and again."""

Body = bytes | Callable[[], bytes]
"""A request's body: JSON as it came, or what makes that of what came. That is called in a thread, once there is a place
for the request."""

T = TypeVar("T")

Note = Callable[[Request], None]
"""Called with a request once it is structured, whatever becomes of it then; from any thread."""


@frozen
class Preparation:
    """Structures and prepares requests.

    Attributes:
        requests: Structures them.
        planner: Prepares them.
        threads: Where work is done that is not short: as many as evaluations where it may hang, or the same as `heavy`.
        heavy: Where heavy bodies are worked on.
        most_separators: Brackets and commas that a body may have.
        own_types_alone: No third party's question types are installed, whose code may hang.
        preparing_waits: Preparing waits for a server.
    """

    requests: Requests
    planner: Planner
    threads: Threads
    heavy: Threads
    most_separators: int
    own_types_alone: bool
    preparing_waits: bool

    async def of_body(self, sent: Body, note: Note, read: Callable[[bytes], Any]) -> tuple[Request, Prepared]:
        """A request body, structured and prepared.

        Args:
            sent: The body.
            note: Takes note of the request.
            read: Gives the body's document, as :meth:`Requests.structure` takes it.

        Raises:
            RequestError: With the problems found.
            BodyTooLarge: It has more values than any request.
            PluginError: A question type broke its contract.
            HttpError: As ``sent`` raises it.
        """
        body, separators = await self.beside(lambda: opened(sent), short=isinstance(sent, bytes))
        check_separators(separators, self.most_separators)

        def structured() -> Request:
            request = self.requests.structure(read(body))
            note(request)
            return request

        def whole() -> tuple[Request, Prepared]:
            request = structured()
            return request, self.planner.prepare(request)

        if len(body) > HEAVY_BODY or separators > HEAVY_SEPARATORS:
            return await self.heavy.run(whole, lambda abandoned: abandoned[1].close())
        short = self.own_types_alone and len(body) <= SHORT_BODY and separators <= SHORT_SEPARATORS
        request = await self.beside(structured, short=short)
        return request, await self.of_request(request)

    async def of_request(self, request: Request) -> Prepared:
        """A structured request, prepared. Raises as :meth:`of_body` does."""
        return await self.beside(
            lambda: self.planner.prepare(request), short=self.is_short(request), abandoned=Prepared.close
        )

    async def ask_on(
        self,
        request: Request,
        before: Prepared,
        distributions: Callable[[], Mapping[str, Sequence[Distribution]]],
    ) -> Prepared:
        """The round that follows one that was read, prepared.

        Args:
            request: What is asked.
            before: The round that was read.
            distributions: Makes those that the types wait for, by question id.

        Raises:
            OpenJevError: As :meth:`of_body`.
        """
        return await self.beside(
            lambda: self.planner.ask_on(request, before, distributions()),
            short=self.is_short(request),
            abandoned=Prepared.close,
        )

    def abandon(self, prepared: Prepared) -> None:
        """End the types that still wait for distributions, where their code may run; nobody waits for that."""
        if prepared.asking:
            self.threads.start(prepared.close)

    async def beside(self, work: Callable[[], T], *, short: bool, abandoned: Callable[[T], None] | None = None) -> T:
        """Do work beside the event loop; on it where that is short: a thread would cost more than the work."""
        return work() if short else await self.threads.run(work, abandoned)

    def is_short(self, request: Request) -> bool:
        """Whether work on a request is short: one order, a small state, small questions of openjev's own types."""
        if request.orders != 1 or self.preparing_waits:
            return False
        written = [question.written for question in request.questions.values()]
        size = sum([SHORT_QUESTIONS + 1 if one is None else len(one) for one in written])
        return size <= SHORT_QUESTIONS and is_small(request.state, SHORT_NODES, SHORT_STATE)


def opened(sent: Body) -> tuple[bytes, int]:
    """A body as JSON, with its brackets and commas: no more values are in it than these and one."""
    body = sent if isinstance(sent, bytes) else sent()
    return body, body.count(b"{") + body.count(b"[") + body.count(b",")


def check_separators(found: int, most: int, advice: str = "") -> None:
    """Refuse a body of so many brackets and commas before it is parsed.

    Raises:
        BodyTooLarge: They are more than ``most``.
    """
    if found > most:
        raise BodyTooLarge(f"the body has {found:,} brackets and commas; at most {most:,} are read{advice}")
