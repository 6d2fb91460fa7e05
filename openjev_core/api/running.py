"""The requests that are being answered now. Each ends early when its client hangs up or when the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from attrs import define
from starlette.requests import ClientDisconnect, Request

from openjev_core.errors import Stopping


@define(eq=False)
class Run:
    """The work on one request.

    Attributes:
        working: Where its client's address is while its work is done.
        limit: Ends the work when its time is set: asyncio's own means of cancelling a part of a task.
        reason: What the work raises when it is ended early.
        over: True once the work has ended by itself.
    """

    working: set[tuple[str, int]]
    limit: asyncio.Timeout
    reason: Exception | None = None
    over: bool = False

    def end(self, reason: Exception) -> None:
        """Cancel the work, which then raises ``reason``. Does nothing when it is over or is being ended already."""
        if not self.over and self.reason is None:
            self.reason = reason
            self.limit.reschedule(asyncio.get_running_loop().time())

    @contextmanager
    def watching(self, request: Request) -> Iterator[None]:
        """End the work when the client goes away, for the length of the block. The body has been read before it."""
        watch = asyncio.create_task(hang_up(request))
        watch.add_done_callback(lambda done: None if done.cancelled() else self.end(ClientDisconnect()))
        try:
            with self.at_work(request):
                yield
        finally:
            watch.cancel()

    @contextmanager
    def at_work(self, request: Request) -> Iterator[None]:
        """The block is work on a request that has arrived whole: its connection does not give way to others."""
        client = (request.client.host, request.client.port) if request.client else ("", 0)
        self.working.add(client)
        try:
            yield
        finally:
            self.working.discard(client)


class Running:
    """The requests that one application is answering.

    Attributes:
        working: The addresses and ports of clients whose requests have arrived whole and are not answered yet.
    """

    def __init__(self) -> None:
        self.working: set[tuple[str, int]] = set()
        self._runs: set[Run] = set()
        self._none = asyncio.Event()
        self._none.set()

    def __len__(self) -> int:
        return len(self._runs)

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[Run]:
        """The block is work that can be ended early.

        Raises:
            Stopping: The server stops; the work was cancelled.
            ClientDisconnect: The client went away; the work was cancelled.
        """
        run = Run(self.working, asyncio.timeout(None))
        try:
            async with run.limit:
                self._runs.add(run)
                self._none.clear()
                try:
                    yield run
                finally:
                    run.over = True
                    self._runs.discard(run)
                    if not self._runs:
                        self._none.set()
        except TimeoutError:
            if run.reason is None:
                raise
            raise run.reason from None

    async def finish(self, seconds: float) -> None:
        """Wait until no request is being answered; after ``seconds``, tell the clients of the rest to try again."""
        try:
            async with asyncio.timeout(seconds):
                await self._none.wait()
        except TimeoutError:
            for run in tuple(self._runs):
                run.end(Stopping("the server is stopping; send the request again"))


async def hang_up(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
