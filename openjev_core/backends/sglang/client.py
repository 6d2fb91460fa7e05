"""Calls to SGLang: reads, what keeps them from a server that starts, and what stops those that nobody waits for."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import orjson
from attrs import define, field
from yarl import URL

from openjev_core.backends.http_client import OK, HttpClient, Unreachable
from openjev_core.backends.replies import refusal
from openjev_core.backends.sglang.wire import SGLangFacts, facts_of
from openjev_core.errors import BackendError, BackendUnavailable

HEALTH_TIMEOUT = 4.0
"""Seconds for the health page of a server that was unreachable; the Python front end takes one at least."""
HOLD_BACK = 1.0
"""Seconds without a call after a server that was unreachable says that it is ready."""
ABORT_TIMEOUT = 2.0
"""Seconds for one ``/abort_request``."""
NOT_FOUND = 404
MAX_ABORTS = 4096
"""Rids that wait to be aborted. Beyond that the oldest are dropped: their connections are closed anyway."""


@define(eq=False)
class SGLangClient:
    """Calls to one SGLang, or to one router in front of several. Made while an event loop runs.

    Attributes:
        url: Its base address, without a trailing slash.
        api_key: Bearer key, if it wants one.
        http: The connections.
        answered_at: When its model last answered, on the monotonic clock; 0 before it did.
        outage: Whether it was unreachable and may still be starting.
        aborts: The calls that it is told to stop.
    """

    url: str
    api_key: str | None = field(default=None, repr=False)
    http: HttpClient = field(init=False, repr=False)
    answered_at: float = field(default=0.0, init=False)
    outage: Outage = field(init=False, repr=False)
    aborts: Aborts = field(init=False, repr=False)
    _rids: Iterator[str] = field(init=False, repr=False)
    _generate: URL = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.outage = Outage(self)
        self.aborts = Aborts(self)
        # SGLang aborts by prefix, so all are of one length; and no other process has the same.
        process = secrets.token_hex(10)
        self._rids = (f"{process}{number:012x}" for number in itertools.count())
        self.http = HttpClient("SGLang", self.url, self.api_key)
        self._generate = self.http.address("generate")

    def new_rid(self) -> str:
        """A name for a call, for :meth:`abort`."""
        return next(self._rids)

    async def generate(self, body: bytes, *, rids: Sequence[str], routing_key: str) -> bytes:
        """``POST /generate``. Cancelling stops the work.

        No time is set: an evaluation has a deadline of its own, without which a call may last for ever (with a full
        queue, the Rust front end never answers).

        Args:
            body: The request.
            rids: The names of its prompts.
            routing_key: Routers that hash a key keep calls with the same one on one worker.

        Returns:
            The body of a 200.

        Raises:
            BackendUnavailable: It is not there, is not ready again after an outage, breaks off, or says that it cannot
                take the call now.
            BackendError: Any other status.
        """
        await self.outage.over()
        try:
            status, content = await self.http.send("POST", self._generate, body, {"X-SMG-Routing-Key": routing_key})
        except Unreachable:
            self.outage.begin()
            raise
        except (asyncio.CancelledError, BackendError):
            self.aborts.add(rids)
            raise
        if status != OK:
            raise refusal("SGLang", status, content)
        self.answered_at = time.monotonic()
        return content

    async def abort(self, rid: str, *, seconds: float) -> int:
        """``POST /abort_request``; returns the status. Raises as :meth:`health` does."""
        status, _ = await self.http.send_within(seconds, "POST", "abort_request", orjson.dumps({"rid": rid}))
        return status

    async def health(self, *, seconds: float) -> bool:
        """``GET /health``; returns whether the server says that it is ready. One without the page counts as ready.

        Raises:
            BackendUnavailable: The server is not there.
            DeadlineExceeded: No answer in time.
        """
        status, _ = await self.http.send_within(seconds, "GET", "health")
        return status in (OK, NOT_FOUND)

    async def facts(self) -> SGLangFacts:
        """What the server's pages say. Raises as :meth:`health` does."""
        server = await self.http.page("server_info")
        # Routers have the page under its old name alone.
        model = await self.http.page("model_info") or await self.http.page("get_model_info")
        return facts_of(server, model)

    async def aclose(self) -> None:
        """Give aborts that wait a moment, and close the connections."""
        await self.aborts.aclose()
        await self.http.aclose()


@define(eq=False)
class Outage:
    """Keeps calls from an SGLang that was unreachable until it says that it is ready.

    The Python front end of 0.5.19 begins with a plain call of its own and dies of a labelled one that meets it, which
    the retries of clients did each time that it restarted.

    Attributes:
        client: Asks it.
        lasts: True from a connection that could not be made until SGLang says that it is ready.
    """

    client: SGLangClient
    lasts: bool = field(default=False, init=False)
    _asking: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _asked_at: float = field(default=0.0, init=False)
    _refusal: str = field(default="", init=False)

    def begin(self) -> None:
        """Let no call through from now on."""
        self.lasts = True

    async def over(self) -> None:
        """Return when calls may be made.

        Raises:
            BackendUnavailable: SGLang is not ready.
        """
        if not self.lasts:
            return
        came_at = time.monotonic()
        async with self._asking:
            # One caller asks, for all who came before it did.
            if self.lasts and self._asked_at < came_at:
                asked_at = time.monotonic()
                if refusal := await self.ask():
                    self._asked_at, self._refusal = asked_at, refusal
                else:
                    await asyncio.sleep(HOLD_BACK)
                    self.lasts = False
        if self.lasts:
            raise BackendUnavailable(self._refusal)

    async def ask(self) -> str | None:
        """Why SGLang is not ready, or ``None`` where it is."""
        try:
            ready = await self.client.health(seconds=HEALTH_TIMEOUT)
        except BackendError as error:
            return str(error)
        return None if ready else "SGLang was unreachable, and does not say yet that it is ready"


@define(eq=False)
class Aborts:
    """Calls that nobody waits for any more: one task tells SGLang to stop them, and nobody waits for that.

    A closed connection stops a call on both front ends, on the Python one only after seconds; there ``/abort_request``
    does it at once. Where the route does not exist (Rust, 404) or wants another key (401) it is not tried again.

    Attributes:
        client: Tells SGLang.
        rids: The calls that SGLang has not been told of yet.
        supported: False where the route cannot be used.
        task: Tells of one call after another until none is left.
    """

    client: SGLangClient
    rids: deque[str] = field(factory=lambda: deque(maxlen=MAX_ABORTS), init=False)
    supported: bool = field(default=True, init=False)
    task: asyncio.Task[None] | None = field(default=None, init=False)

    def add(self, rids: Iterable[str]) -> None:
        """Have these calls stopped, soon."""
        if not self.supported:
            return
        self.rids.extend(rids)
        if self.task is None or self.task.done():
            self.task = asyncio.get_running_loop().create_task(self.drain())

    async def drain(self) -> None:
        """Tell SGLang of every call; forget all of them when it does not answer: then it does not work on them."""
        while self.rids and self.supported:
            try:
                status = await self.client.abort(self.rids.popleft(), seconds=ABORT_TIMEOUT)
            except BackendError:
                self.rids.clear()
                return
            self.supported = status not in (401, 403, 404, 405)

    async def aclose(self) -> None:
        """Give what is waiting a moment, then stop."""
        if self.task is not None:
            _, running = await asyncio.wait([self.task], timeout=ABORT_TIMEOUT)
            for task in running:
                task.cancel()
