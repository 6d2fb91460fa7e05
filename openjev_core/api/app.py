"""The application: FastAPI's, built around an engine, nothing global.

FastAPI routes, turns errors into responses and carries the middleware. Handlers take Starlette's request and return its
response: FastAPI refuses attrs classes in annotations, and question types are attrs classes that plugins bring. So the
routes read their bodies themselves, and the document is written from the question types.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson
from attrs import frozen
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from openjev_core.api.body import REQUEST_BYTES, Room
from openjev_core.api.exchange import Exchange, TrustedProxies
from openjev_core.api.keys import Keys
from openjev_core.api.metrics import Metrics
from openjev_core.api.openapi import openapi_document
from openjev_core.api.pages.asset import REVALIDATE, Asset
from openjev_core.api.pages.routes import page_routes
from openjev_core.api.recorder import Recorder
from openjev_core.api.request_log import RequestLog
from openjev_core.api.responses import DECISIONS, detail_response, error_response
from openjev_core.api.routes import Routes
from openjev_core.api.running import Running
from openjev_core.api.tracing import Tracing
from openjev_core.engine.engine import Engine
from openjev_core.errors import MethodNotAllowed, NotFound, OpenJevError, StartupError
from openjev_core.settings import Settings, is_loopback

MEANT = {
    **{name: f"/v1/{name}" for name in ("systemone", "decisions", "models", "limits")},
    **dict.fromkeys(("health", "healthz", "ready", "readyz"), "/health"),
    **dict.fromkeys(("live", "livez"), "/health/live"),
    **{name: f"/{name}" for name in ("metrics", "docs", "openapi.json")},
}
"""Last parts of paths that clients get wrong by a level or a slash, as ``/v1/v1/systemone``, or that probes ask for."""

MCP = "/mcp"
"""Where agents are offered tools."""

NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False}
"""FastAPI's own would record a request a second time, with what :class:`Tracing` and the log leave out."""


def create_app(engine: Engine, *, startup_seconds: float = 0.0, tracing: Tracing | None = None) -> FastAPI:
    """The application that serves an engine, by the engine's own settings.

    Its ``state`` has ``running``, the requests that are being answered, and ``room``, the memory that requests take
    while they are received.

    Args:
        engine: Open, and kept open for as long as the application is served.
        startup_seconds: How long opening it took, for ``/health``.
        tracing: Where traces go; by the settings when ``None``.

    Raises:
        StartupError: Tracing or the tools for agents are switched on and not installed.
    """
    settings = engine.settings
    metrics = Metrics(engine)
    recorder = Middleware(
        Recorder,
        metrics=metrics,
        tracing=Tracing.from_settings(settings) if tracing is None else tracing,
        log=RequestLog(settings.log_format),
        proxies=TrustedProxies(settings.trusted_proxies),
        patience=max(settings.body_timeout, 1.0),
    )
    document = openapi_document(engine.registry)
    app = FastAPI(
        title=document["info"]["title"],
        version=document["info"]["version"],
        openapi_url=None,  # FastAPI's writes the document anew for each request, which takes milliseconds
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
        middleware=[recorder, *cors(settings), Middleware(InternalErrors)],
        exception_handlers={OpenJevError: answer_error, HTTPException: answer_unrouted},
    )
    app.state.running = Running()
    # Twice what the evaluations that are admitted can have brought: more could only be told that there is no capacity.
    app.state.room = Room(2 * settings.max_concurrent_requests * (REQUEST_BYTES + settings.max_body_bytes))
    routes = Routes(engine, app.state.running, app.state.room, startup_seconds)
    keys = Keys(settings.api_key)
    keyed = keys.checked
    app.add_route("/v1/systemone", keyed(routes.systemone), methods=["POST"])
    app.add_route(DECISIONS, keyed(routes.decisions), methods=["POST"])
    app.add_route("/v1/models", keyed(routes.models))
    app.add_route("/v1/models/{id:path}", keyed(routes.model))
    app.add_route("/v1/limits", keyed(routes.limits))
    app.add_route("/metrics", keyed(metrics.response))
    app.add_route("/health", routes.health)
    app.add_route("/health/live", routes.live)
    if is_loopback(settings.host) if settings.debug_prompts is None else settings.debug_prompts:
        app.add_route("/v1/prompts", keyed(routes.prompts), methods=["POST"])
    if settings.mcp:
        app.router.routes.append(Route(MCP, mcp_route(engine, app, keys), methods=["POST"]))
    app.add_route("/openapi.json", Asset(".json", lambda: orjson.dumps(document), caching=REVALIDATE).response)
    for path, page in page_routes().items():
        app.add_route(path, page.response)
    return app


def mcp_route(engine: Engine, app: FastAPI, keys: Keys) -> ASGIApp:
    """The route for agents.

    Raises:
        StartupError: Its package is not installed.
    """
    try:
        from openjev_core.api.mcp_route import McpRoute  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise StartupError("OPENJEV_MCP is on, but the package mcp is not installed; install openjev[mcp]") from error
    return McpRoute(engine, app.state.running, app.state.room, keys)


def cors(settings: Settings) -> list[Middleware]:
    """The middleware that lets browsers call from other origins; none unless origins are configured."""
    if not settings.cors_origins:
        return []
    return [
        Middleware(
            Cors,
            allow_origins=settings.cors_origins,
            allow_methods=("GET", "POST"),
            allow_headers=("Authorization", "Content-Type", "Content-Encoding", "X-Request-Id"),
            expose_headers=(
                "x-typesafe-request-id",
                "x-request-id",
                "x-openjev-model",
                "x-openjev-prefix-tokens",
                "x-openjev-cached-tokens",
                "Server-Timing",
                "Retry-After",
                "retry-after-ms",
            ),
        )
    ]


class Cors(CORSMiddleware):
    """Starlette's middleware, with its refusals in the shape of the wire contract."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """Whether another origin may call."""
        response = super().preflight_response(request_headers)
        if response.status_code == HTTPStatus.OK:
            return response
        reason = f"{bytes(response.body).decode()}; this server allows what OPENJEV_CORS_ORIGINS names"
        headers = {name: value for name, value in response.headers.items() if not name.startswith("content-")}
        return detail_response(response.status_code, "cors_refused", reason, headers)


@frozen
class InternalErrors:
    """Answers requests that end in an error which nobody expected.

    FastAPI's handler for these stands outside the middleware and raises the error again, so the response would have no
    request id, and the server would log the error with all that its message quotes.
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one scope."""
        try:
            await self.app(scope, receive, send)
        except ClientDisconnect:
            raise
        except Exception as error:
            exchange: Exchange = scope["state"]["exchange"]
            if exchange.status is not None:
                raise
            exchange.error = error
            await error_response(error, exchange.request_id, exchange.path)(scope, receive, send)


async def answer_error(request: Request, error: OpenJevError) -> Response:
    """The response to a request that ended in one of openjev's own errors."""
    exchange: Exchange = request.state.exchange
    exchange.error = error
    return error_response(error, exchange.request_id, exchange.path)


async def answer_unrouted(request: Request, refusal: HTTPException) -> Response:
    """The response to a request for which there is no route: what FastAPI itself refuses."""
    path = request.state.exchange.path[:200]
    if allow := (refusal.headers or {}).get("Allow"):
        allowed = sorted(allow.split(", "))
        message = f"{path} does not take {request.method[:40]!r}, only {', '.join(allowed)}"
        return await answer_error(request, MethodNotAllowed(message, allowed))
    return await answer_error(request, NotFound(f"there is no route {path!r}; {hint_for(path)}GET / lists them"))


def hint_for(path: str) -> str:
    """The route that a path like it was meant for, as a part of a sentence; empty where none is likely."""
    meant = MEANT.get(path.rstrip("/").rpartition("/")[2].lower())
    return f"did you mean {meant}? " if meant else ""
