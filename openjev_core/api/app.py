"""The application: FastAPI's, built around an engine, nothing global.

FastAPI routes, carries the middleware and owns the OpenAPI document. Its own reading of bodies and writing of answers
is not used: it refuses attrs classes in annotations, and question types are attrs classes that plugins bring.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp

from openjev_core.api.dispatch import Endpoint, Route, always, endpoints
from openjev_core.api.json_reply import json_reply
from openjev_core.api.keys import Keys
from openjev_core.api.metrics import Metrics
from openjev_core.api.openapi import openapi_document
from openjev_core.api.pages import page_routes
from openjev_core.api.proxies import TrustedProxies
from openjev_core.api.recorder import Recorder
from openjev_core.api.request_log import RequestLog
from openjev_core.api.routes.prompts import Prompts
from openjev_core.api.routes.service import Health, effective_limits, live, models
from openjev_core.api.routes.systemone import SystemOne
from openjev_core.api.running import Running
from openjev_core.api.tracing import Tracing
from openjev_core.engine.engine import Engine
from openjev_core.settings import is_loopback


class OpenJevApp(FastAPI):
    """The application that serves an engine. Make it with :func:`create_app`.

    Attributes:
        engine: What it serves.
        running: The evaluations that run now.
        metrics: Their counts.
    """

    def __init__(self, engine: Engine, *, startup_seconds: float, tracing: Tracing) -> None:
        document = openapi_document(engine.registry)
        super().__init__(
            title=document["info"]["title"],
            version=document["info"]["version"],
            openapi_url=None,
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
        )
        self.engine = engine
        self.running = Running()
        self.metrics = Metrics(engine)
        self._document = document
        keys = Keys(engine.settings.api_key)
        # Starlette takes an endpoint that is no function for an ASGI application, with every method left to it.
        self.router.routes[:] = [
            StarletteRoute(path, endpoint) for path, endpoint in endpoints(self._routes(startup_seconds), keys).items()
        ]
        self.router.default = Endpoint(keys, {})
        self._add_middleware(tracing)

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document, from the question types' own classes."""
        return self._document

    def build_middleware_stack(self) -> ASGIApp:
        """The middleware that was added, around the routes.

        FastAPI would put five more there: for errors, which every endpoint here answers itself; for the size of bodies,
        which ``api/body.py`` limits; and for dependencies, of which there are none. Each costs every request.
        """
        app: ASGIApp = self.router
        for middleware in reversed(self.user_middleware):
            app = middleware.cls(app, *middleware.args, **middleware.kwargs)
        return app

    def _routes(self, startup_seconds: float) -> list[Route]:
        engine = self.engine
        routes = [
            Route("POST", "/v1/systemone", SystemOne(engine, self.running)),
            Route("GET", "/v1/models", always(models(engine))),
            Route("GET", "/v1/limits", always(effective_limits(engine))),
            Route("GET", "/metrics", self.metrics),
            Route("GET", "/health", Health(engine, startup_seconds), keyed=False),
            Route("GET", "/health/live", always(live()), keyed=False),
            Route("GET", "/openapi.json", always(json_reply(200, self._document)), keyed=False),
            *page_routes(),
        ]
        shown = engine.settings.debug_prompts
        if is_loopback(engine.settings.host) if shown is None else shown:
            routes.append(Route("POST", "/v1/prompts", Prompts(engine)))
        return routes

    def _add_middleware(self, tracing: Tracing) -> None:
        """The last one added is the outermost."""
        settings = self.engine.settings
        if settings.cors_origins:
            self.add_middleware(
                CORSMiddleware,
                allow_origins=settings.cors_origins,
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
        self.add_middleware(
            Recorder,
            metrics=self.metrics,
            tracing=tracing,
            log=RequestLog(settings.log_format),
            proxies=TrustedProxies(settings.trusted_proxies),
        )


def create_app(engine: Engine, *, startup_seconds: float = 0.0, tracing: Tracing | None = None) -> OpenJevApp:
    """The application that serves an engine, by the engine's own settings.

    Args:
        engine: Open, and kept open for as long as the application is served.
        startup_seconds: How long opening it took, for ``/health``.
        tracing: Where traces go; by the settings when ``None``.

    Raises:
        SettingsError: A setting of the HTTP side is wrong.
    """
    if tracing is None:
        tracing = Tracing.from_settings(engine.settings)
    return OpenJevApp(engine, startup_seconds=startup_seconds, tracing=tracing)
