"""``POST /mcp``: tools for agents, by the Model Context Protocol over streamable HTTP.

Nothing is kept between requests: each brings what it needs, so that any worker can answer it, and closing a response
cancels its call. A body is received, and an evaluation is admitted, as on every other route.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from attrs import define
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from openjev_core.api.body import MOST_TOOL_BYTES, Room, read_body
from openjev_core.api.exchange import Exchange
from openjev_core.api.keys import Keys
from openjev_core.api.responses import NO_ANSWER
from openjev_core.api.running import Run, Running
from openjev_core.engine.admission import Admission
from openjev_core.engine.engine import Engine
from openjev_core.engine.preparation import check_separators, opened
from openjev_core.errors import BackendUnavailable, ForeignOrigin, OpenJevError
from openjev_core.settings import is_loopback
from openjev_core.wires.mcp_server import mcp_server

if TYPE_CHECKING:
    from openjev_core.wires.mcp_server import Context

MOST_SEPARATORS = 10_000
"""Brackets and commas of a body. The protocol's library parses on the event loop, and 500,000 held it half a second."""

CALLS_PER_EVALUATION = 2
"""Bodies that the protocol's library works on at once, for each evaluation that is admitted. It takes up to 16 times
their bytes before an evaluation could be refused; what waits has not been decompressed."""


class McpRoute:
    """The route, as an ASGI application.

    Args:
        engine: Evaluates.
        running: Where requests are entered, so that a stop can end them.
        room: The memory that requests may take while they are received.
        keys: The keys that are accepted.
    """

    def __init__(self, engine: Engine, running: Running, room: Room, keys: Keys) -> None:
        self._engine = engine
        self._running = running
        self._room = room
        self._keys = keys
        self._server = mcp_server(engine.registry, self._answer)
        settings = engine.settings
        self._calls = Admission(
            CALLS_PER_EVALUATION * settings.max_concurrent_requests,
            settings.request_timeout + settings.queue_timeout,  # an evaluation inside has waited and ends before
            settings.queue_timeout,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        self._keys.check_request(request)
        self._check_origin(request.headers.get("origin"))
        limit, seconds = min(self._engine.limits.max_body_bytes, MOST_TOOL_BYTES), self._engine.settings.body_timeout
        async with self._running.entered() as run:
            sent = await read_body(request, self._room, limit=limit, seconds=seconds)
            with run.at_work(request):
                async with self._calls.admit():
                    body, separators = opened(sent)
                    check_separators(separators, MOST_SEPARATORS, "; POST /v1/systemone takes more")
                    connection = Connection(body, run, receive, send)
                    # One of its own for each request: it holds a group of tasks, which ends with the request.
                    manager = StreamableHTTPSessionManager(self._server, stateless=True, max_request_body_size=limit)
                    async with manager.run():
                        await manager.handle_request(scope, connection.receive, connection.send)

    def _check_origin(self, origin: str | None) -> None:
        """Refuse a page of another origin: a browser would send it here where a name leads to this machine.

        Raises:
            ForeignOrigin: The origin is neither allowed nor of this machine.
        """
        allowed = self._engine.settings.cors_origins
        if origin is None or "*" in allowed or origin in allowed or is_loopback(urlsplit(origin).hostname or ""):
            return
        raise ForeignOrigin(f"pages of {origin[:200]!r} may not call this; OPENJEV_CORS_ORIGINS names those that may")

    async def _answer(self, body: bytes, context: Context) -> Mapping[str, Any]:
        request: Request = cast("Request", context.request)
        exchange: Exchange = request.state.exchange
        try:
            exchange.evaluation = await self._engine.evaluate_body(
                body, request_id=exchange.request_id, structured=exchange.note
            )
        except OpenJevError as error:
            exchange.error = error
            if isinstance(error, BackendUnavailable):
                raise BackendUnavailable(NO_ANSWER) from error
            raise
        return exchange.evaluation.body()


@define
class Connection:
    """A request whose body has been read, and its response.

    Attributes:
        body: What :meth:`receive` gives first; ``None`` once it has.
        run: Ends when the client goes away before its response does.
        answered: True once the response has ended.
    """

    body: bytes | None
    run: Run
    _receive: Receive
    _send: Send
    answered: bool = False

    async def receive(self) -> Message:
        """The body, then whatever comes."""
        if (body := self.body) is not None:
            self.body = None
            return {"type": "http.request", "body": body, "more_body": False}
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self.answered:
            self.run.end(ClientDisconnect())
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the response."""
        self.answered = message["type"] == "http.response.body" and not message.get("more_body")
        await self._send(message)
