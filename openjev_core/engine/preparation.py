"""Structuring and preparing requests: on the event loop where that is quick, in a thread where it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import frozen

from openjev_core.engine.plan import Planner, Prepared
from openjev_core.engine.request import Request, Requests, is_small
from openjev_core.engine.threads import Threads
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
"""Heavy bodies that are worked on at once. One of 2 MB may take 100 MB while it is structured, and seconds in which it
competes with the event loop for Python's lock; most of such bodies are refused."""

T = TypeVar("T")

Note = Callable[[Request], None]
"""Called with a request once it is structured, whatever becomes of it then; from any thread."""


@frozen
class Preparation:
    """Structures and prepares requests.

    Attributes:
        requests: Structures them.
        planner: Prepares them.
        threads: Where work is done that is not short.
        heavy: Where heavy bodies are worked on.
        own_types_alone: No third party's question types are installed, whose code may hang.
        preparing_waits: Preparing waits for a server.
    """

    requests: Requests
    planner: Planner
    threads: Threads
    heavy: Threads
    own_types_alone: bool
    preparing_waits: bool

    async def of_body(self, body: bytes, note: Note, read: Callable[[bytes], Any]) -> tuple[Request, Prepared]:
        """A request body, structured and prepared.

        Args:
            body: As it came.
            note: Takes note of the request.
            read: Gives the body's document, as :meth:`Requests.structure` takes it.

        Raises:
            RequestError: With the problems found.
            PluginError: A question type broke its contract.
        """

        def structured() -> Request:
            request = self.requests.structure(read(body))
            note(request)
            return request

        def whole() -> tuple[Request, Prepared]:
            request = structured()
            return request, self.planner.prepare(request)

        separators = body.count(b"{") + body.count(b"[") + body.count(b",")
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
