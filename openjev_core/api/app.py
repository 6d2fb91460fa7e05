"""The ASGI application: built around an engine, nothing global."""

from __future__ import annotations

import time

from openjev_core.api.dispatch import Dispatch, Route, always
from openjev_core.api.exchange import App, Exchange, Message, Receive, Scope, Send, joined_headers
from openjev_core.api.json_reply import json_reply
from openjev_core.api.keys import Keys
from openjev_core.api.metrics import Metrics
from openjev_core.api.openapi import openapi_document
from openjev_core.api.pages import page_routes
from openjev_core.api.proxies import TrustedProxies
from openjev_core.api.request_id import request_id_for
from openjev_core.api.request_log import RequestLog
from openjev_core.api.routes.prompts import Prompts
from openjev_core.api.routes.service import Health, effective_limits, live, models
from openjev_core.api.routes.systemone import SystemOne
from openjev_core.api.running import Running
from openjev_core.api.tracing import Tracing
from openjev_core.engine.engine import Engine
from openjev_core.settings import is_loopback


class OpenJevApp:
    """The outermost ASGI application: names each request, passes it on, and writes down what came of it.

    Make it with :func:`create_app`.

    Attributes:
        engine: What it serves.
        running: The evaluations that run now.
        metrics: Their counts.
    """

    def __init__(self, engine: Engine, *, startup_seconds: float = 0.0) -> None:
        settings = engine.settings
        self.engine = engine
        self.running = Running()
        self.metrics = Metrics(engine)
        self._log = RequestLog(settings.log_format)
        self._tracing = Tracing.from_settings(settings)
        self._proxies = TrustedProxies(settings.trusted_proxies)
        self._inner: App = Dispatch(self._routes(startup_seconds), Keys(settings.api_key))
        if settings.cors_origins:
            self._inner = with_cors(self._inner, settings.cors_origins)

    def _routes(self, startup_seconds: float) -> list[Route]:
        engine = self.engine
        routes = [
            Route("POST", "/v1/systemone", SystemOne(engine, self.running)),
            Route("GET", "/v1/models", always(models(engine))),
            Route("GET", "/v1/limits", always(effective_limits(engine))),
            Route("GET", "/metrics", self.metrics),
            Route("GET", "/health", Health(engine, startup_seconds), keyed=False),
            Route("GET", "/health/live", always(live()), keyed=False),
            Route("GET", "/openapi.json", always(json_reply(200, openapi_document(engine.registry))), keyed=False),
            *page_routes(),
        ]
        shown = engine.settings.debug_prompts
        if is_loopback(engine.settings.host) if shown is None else shown:
            routes.append(Route("POST", "/v1/prompts", Prompts(engine)))
        return routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one scope."""
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await answer_lifespan(receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = joined_headers(scope["headers"])
        exchange = Exchange(
            request_id=request_id_for(headers.get(b"x-request-id")),
            method=scope["method"],
            path=scope["path"],
            client=self._proxies.client((scope.get("client") or ("unknown",))[0], headers),
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
            await self._inner(scope, receive, send_named)
        finally:
            self.metrics.observe(exchange)
            self._tracing.record(exchange)
            self._log.write(exchange)
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


def create_app(engine: Engine, *, startup_seconds: float = 0.0) -> OpenJevApp:
    """The application that serves an engine, by the engine's own settings.

    Args:
        engine: Open, and kept open for as long as the application is served.
        startup_seconds: How long opening it took, for ``/health``.

    Raises:
        SettingsError: A setting of the HTTP side is wrong.
    """
    return OpenJevApp(engine, startup_seconds=startup_seconds)


def with_cors(app: App, origins: tuple[str, ...]) -> App:
    """``app`` with answers to browsers' preflight requests, and the headers that let these origins read a reply."""
    from starlette.middleware.cors import CORSMiddleware  # noqa: PLC0415 - imported only where it is configured

    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=("GET", "POST"),
        allow_headers=("Authorization", "Content-Type", "Content-Encoding", "X-Request-Id"),
        expose_headers=(
            "x-typesafe-request-id",
            "x-openjev-model",
            "x-openjev-prefix-tokens",
            "x-openjev-cached-tokens",
            "Server-Timing",
            "Retry-After",
        ),
    )


async def answer_lifespan(receive: Receive, send: Send) -> None:
    """The engine is open before the application exists, so there is nothing to start or stop."""
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return
