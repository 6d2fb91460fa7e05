"""The middleware around everything: it gives each request an id, records what came of it, and reads refused bodies."""

from __future__ import annotations

import asyncio
import time

from attrs import define, frozen
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openjev_core.api.exchange import Exchange, TrustedProxies, joined, path_of, request_id_for
from openjev_core.api.metrics import Metrics
from openjev_core.api.request_log import RequestLog
from openjev_core.api.responses import error_response
from openjev_core.api.tracing import Tracing
from openjev_core.errors import HttpVersion, MalformedBody, NotFound

DRAIN_BYTES = 64 * 1024 * 1024
DRAIN_SECONDS = 2.0


@frozen
class Recorder:
    """Gives each request its :class:`Exchange`, as ``state.exchange``, and each response the request's id.

    Attributes:
        app: The application inside.
        metrics, tracing, log: Each gets every exchange that has ended.
        proxies: Whose ``x-forwarded-for`` is believed.
        patience: Seconds that a client of HTTP/2 may take to take the next part of its response.
    """

    app: ASGIApp
    metrics: Metrics
    tracing: Tracing
    log: RequestLog
    proxies: TrustedProxies
    patience: float

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one scope."""
        if scope["type"] == "lifespan":
            return  # nothing is opened or closed with the application
        headers = Headers(scope=scope)
        scope["path"] = path_of(scope["raw_path"])
        peer = (scope.get("client") or ("unknown",))[0]
        exchange = Exchange(
            request_id=request_id_for(joined(headers, "x-request-id")),
            method=scope.get("method", "GET"),
            path=scope["path"],
            client=self.proxies.client(peer, joined(headers, "x-forwarded-for")),
            headers=headers,
            started=time.perf_counter(),
        )
        scope.setdefault("state", {})["exchange"] = exchange
        upload = Upload(receive)
        if scope["http_version"] == "2":
            send = impatient(send, self.patience)

        async def send_on(message: Message) -> None:
            if message["type"] in RESPONSE_STARTS:
                exchange.status = message["status"]
                message["headers"] = [*message["headers"], *request_ids(exchange.request_id)]
            elif message["type"] == "http.response.body" and not upload.ended and not message.get("more_body"):
                await send({**message, "more_body": True})
                await upload.drain()
                message = {"type": "http.response.body", "body": b""}
            await send(message)

        try:
            if refusal := refusal_of(scope, headers):
                exchange.error = refusal
                response = error_response(refusal, exchange.request_id, exchange.path)
                response.headers["connection"] = "close"
                await response(scope, receive, send_on)
            else:
                await self.app(scope, upload.receive, send_on)
        except ClientDisconnect:
            exchange.hung_up = True
        finally:
            if "endpoint" in scope:  # a route matched; a parameter's value, such as a model's name, is no part of it
                exchange.route = exchange.path
                for name, value in scope["path_params"].items():
                    exchange.route = f"{exchange.path.removesuffix(value)}{{{name}}}"
            self.metrics.observe(exchange)
            self.tracing.record(exchange)
            self.log.write(exchange)
            forget(exchange)


RESPONSE_STARTS = frozenset({"http.response.start", "websocket.http.response.start"})


def request_ids(request_id: str) -> list[tuple[bytes, bytes]]:
    """The headers by which clients of either wire know a response."""
    return [(name, request_id.encode()) for name in (b"x-typesafe-request-id", b"x-request-id")]


@define(eq=False)
class Upload:
    """A request's body on its way in.

    Attributes:
        ended: True once nothing more of it will come.
    """

    _receive: Receive
    ended: bool = False

    async def receive(self) -> Message:
        """The next message from the server."""
        message = await self._receive()
        if not message.get("more_body", False):  # a disconnect ends a body, too
            self.ended = True
        return message

    async def drain(self) -> None:
        """Read the rest and discard it, within bounds, so that a client that still sends gets to read its response.

        The server closes a connection whose body has not been read. Bytes that are still on their way then reset it,
        and a reset overtakes the response.
        """
        discarded = 0
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                while not self.ended and discarded <= DRAIN_BYTES:
                    discarded += len((await self.receive()).get("body", b""))
        except TimeoutError:
            return


def impatient(send: Send, seconds: float) -> Send:
    """``send`` with a limit on the time that a message may take.

    hypercorn lets a message of HTTP/2 wait for its client for ever, even once the connection is gone. One of HTTP/1.1
    ends with its connection.
    """

    async def send_in_time(message: Message) -> None:
        try:
            async with asyncio.timeout(seconds):
                await send(message)
        except TimeoutError:
            raise ClientDisconnect from None

    return send_in_time


def refusal_of(scope: Scope, headers: Headers) -> Exception | None:
    """Why a request is refused before anything looks at it; ``None`` for most.

    A body with two lengths is how requests are smuggled past a proxy that believes the other one.
    """
    if scope["type"] == "websocket":
        return NotFound("there are no WebSockets here")
    if scope["http_version"] == "2":
        # Nothing else switches off the one without TLS. hypercorn ends all of a connection when one of its streams goes
        # wrong: here no evaluation is lost by that.
        return HttpVersion("this server speaks HTTP/1.1; HTTP/2 is not served")
    if "transfer-encoding" in headers and "content-length" in headers:
        return MalformedBody("the body has two lengths, a Content-Length and a Transfer-Encoding; send one of them")
    return None


def forget(exchange: Exchange) -> None:
    """Let go of an error that has been written down.

    The frames of its traceback hold the document, and often the error itself: cycles that would keep megabytes of a
    hostile request until Python's collector comes by.
    """
    waiting: list[BaseException | None] = [exchange.error]
    exchange.error = None
    while waiting:
        error = waiting.pop()
        if error is not None:
            waiting += [error.__cause__, error.__context__]
            error.__traceback__ = error.__cause__ = error.__context__ = None
