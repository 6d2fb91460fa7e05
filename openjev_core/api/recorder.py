"""Naming each request, and writing down what came of it."""

from __future__ import annotations

import time

from attrs import frozen

from openjev_core.api.exchange import App, Exchange, Message, Receive, Scope, Send, joined_headers, path_of
from openjev_core.api.metrics import Metrics
from openjev_core.api.proxies import TrustedProxies
from openjev_core.api.request_id import request_id_for
from openjev_core.api.request_log import RequestLog
from openjev_core.api.tracing import Tracing


@frozen
class Recorder:
    """The outermost middleware: gives a request its :class:`Exchange`, and the response its id.

    Attributes:
        app: What answers.
        metrics, tracing, log: Told of every exchange that has ended.
        proxies: Whose word on a client's address is taken.
    """

    app: App
    metrics: Metrics
    tracing: Tracing
    log: RequestLog
    proxies: TrustedProxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one scope."""
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = joined_headers(scope["headers"])
        scope["path"] = path_of(scope)
        exchange = Exchange(
            request_id=request_id_for(headers.get(b"x-request-id")),
            method=scope["method"],
            path=scope["path"],
            client=self.proxies.client((scope.get("client") or ("unknown",))[0], headers),
            headers=headers,
            started=time.perf_counter(),
        )
        scope["openjev.exchange"] = exchange
        identity = (b"x-typesafe-request-id", exchange.request_id.encode())

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = [*message["headers"], identity]
            await send(message)

        try:
            await self.app(scope, receive, send_named)
        finally:
            self.metrics.observe(exchange)
            self.tracing.record(exchange)
            self.log.write(exchange)
            forget(exchange)


def forget(exchange: Exchange) -> None:
    """Let go of an error that has been written down.

    The frames of its traceback hold the document, and often the error itself: cycles that would keep megabytes of a
    hostile request until Python's collector comes by.
    """
    error: BaseException | None = exchange.error
    exchange.error = None
    while error is not None and error.__traceback__ is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
