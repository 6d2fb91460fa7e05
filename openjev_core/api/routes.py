"""What answers each route of the wire contract. The pages for people are in ``pages/``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import attrs
from starlette.requests import Request
from starlette.responses import Response

from openjev_core.api.body import Room, read_body
from openjev_core.api.exchange import Exchange
from openjev_core.api.responses import JsonResponse
from openjev_core.api.running import Running
from openjev_core.engine.engine import Engine
from openjev_core.engine.evaluation import Evaluation
from openjev_core.engine.preparation import Body
from openjev_core.engine.request import ALIAS
from openjev_core.errors import BackendError, NotFound, RequestError
from openjev_core.own_settings import told
from openjev_core.wires.decision_shapes import DecisionShapes
from openjev_core.wires.decisions import DecisionsRequest
from openjev_core.wires.wire import SystemOneRequest, WireRequest

NO_STORE = {"cache-control": "no-store"}

DEMO_NOTE = "a small demo model: it shows that everything works and is no classifier"


class Routes:
    """The handlers of the routes.

    Args:
        engine: Evaluates, and knows what is served.
        running: Where requests are entered, so that a stop can end them.
        room: The memory that requests may take while they are received.
        startup_seconds: How long the start took.
    """

    def __init__(self, engine: Engine, running: Running, room: Room, startup_seconds: float) -> None:
        self._engine = engine
        self._running = running
        self._room = room
        self._shapes = DecisionShapes()
        self._startup_seconds = round(startup_seconds, 3)
        self._started = datetime.now(UTC).date()

    async def systemone(self, request: Request) -> Response:
        """``POST /v1/systemone``: evaluate a request."""
        return await self._evaluated(request, SystemOneRequest())

    async def decisions(self, request: Request) -> Response:
        """``POST /v1/decisions``: evaluate a request in OpenAI's shape."""
        return await self._evaluated(request, DecisionsRequest(self._shapes, self._engine.registry.types))

    async def prompts(self, request: Request) -> Response:
        """``POST /v1/prompts``: show what the model would read, without reading it."""
        async with self._running.entered() as run:
            body = await self._body(request)
            with run.watching(request):
                shown = await self._engine.preview_body(body, structured=request.state.exchange.note)
        return JsonResponse(shown)

    async def models(self, _request: Request) -> Response:
        """``GET /v1/models``, in TypeSafe's shape and in OpenAI's at once."""
        names, released = self._described()
        return JsonResponse(
            {
                "models": [
                    {"name": name, "description": text, "release_date": released} for name, text in names.items()
                ],
                "object": "list",
                "data": [one_model(name) for name in names],
            }
        )

    async def model(self, request: Request) -> Response:
        """``GET /v1/models/{id}``: one model, in both shapes. Every name that requests may use is there."""
        name = unquote(request.path_params["id"])
        names, released = self._described()
        if name not in names and not name.startswith("jev-"):
            raise NotFound(f"there is no model {name[:80]!r}; served: {', '.join(names)}")
        text = names.get(name, names[ALIAS])
        return JsonResponse({**one_model(name), "name": name, "description": text, "release_date": released})

    def _described(self) -> tuple[dict[str, str], str]:
        """The model's names, each with a description, and its release date."""
        model = self._engine.model
        released = model.release_date
        description = f"{model.public_name} on {model.engine}"
        if model.demo:
            description += f"; {DEMO_NOTE}"
        if released is None:
            # Clients want a date, and may parse it.
            released = self._started.isoformat()
            description += "; the date is that of this server's start, the model's own is not known"
        named = {ALIAS: f"this server's one model: {description}"}
        return {**named, **dict.fromkeys(self._engine.names, description)}, released

    async def limits(self, _request: Request) -> Response:
        """``GET /v1/limits``: those of the server, of which a worker has its share; types' settings; any promise."""
        limits, workers = self._engine.limits, self._engine.settings.workers
        whole = attrs.evolve(
            limits,
            max_concurrent_requests=limits.max_concurrent_requests * workers,
            max_concurrent_branches=limits.max_concurrent_branches * workers,
        )
        promise = self._engine.promise
        accepted = {} if promise is None else {"accepted_answers": promise.json}
        types = {one.name: told(one.own) for one in self._engine.registry.types.values() if one.own is not None}
        return JsonResponse({**attrs.asdict(whole), **({"types": types} if types else {}), **accepted})

    async def live(self, _request: Request) -> Response:
        """``GET /health/live``: the process serves; the backend is not asked."""
        return JsonResponse({"status": "ok"}, headers=NO_STORE)

    async def health(self, request: Request) -> Response:
        """``GET /health``: 200 when the backend answers, 503 when it does not. It is asked once a second at most."""
        model = self._engine.model
        code, status, headers = 200, "ok", NO_STORE
        try:
            await self._engine.check()
        except BackendError as error:
            request.state.exchange.error = error
            code, status, headers = 503, "unavailable", {**NO_STORE, "retry-after": "2"}
        body = {
            "status": status,
            "startup_seconds": self._startup_seconds,
            "model": model.public_name,
            "backend": {"name": model.engine, "status": status},
        }
        return JsonResponse({**body, "note": DEMO_NOTE} if model.demo else body, code, headers)

    async def _evaluated(self, request: Request, wire: WireRequest) -> Response:
        exchange: Exchange = request.state.exchange
        async with self._running.entered() as run:
            body = await self._body(request)
            with run.watching(request):
                try:
                    evaluation = await self._engine.evaluate_body(
                        body, read=wire.document, request_id=exchange.request_id, structured=exchange.note
                    )
                except RequestError as error:
                    located = wire.located(error)
                    if located is error:
                        raise  # raised from itself, it would be a circle, which keeps the request's text alive
                    raise located from error
        exchange.evaluation = evaluation
        return JsonResponse(wire.answered(evaluation), headers=evaluation_headers(evaluation))

    async def _body(self, request: Request) -> Body:
        seconds = self._engine.settings.body_timeout
        return await read_body(request, self._room, limit=self._engine.limits.max_body_bytes, seconds=seconds)


def one_model(name: str) -> dict[str, Any]:
    """A model as OpenAI describes it, without the time of its creation, which is not known."""
    return {"id": name, "object": "model", "owned_by": "openjev"}


def evaluation_headers(evaluation: Evaluation) -> dict[str, str]:
    """The headers of an evaluation's response."""
    timing = ", ".join(f"{name};dur={seconds * 1000:.2f}" for name, seconds in evaluation.timings.phases)
    headers = {
        "x-openjev-model": header_text(evaluation.model),
        "x-openjev-prefix-tokens": str(evaluation.usage.prefix_tokens),
        "server-timing": timing,
    }
    if evaluation.usage.cached_tokens is not None:
        headers["x-openjev-cached-tokens"] = str(evaluation.usage.cached_tokens)
    return headers


def header_text(text: str) -> str:
    """``text`` as a header's value: what a header cannot hold is spelled out."""
    visible = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return visible.encode("ascii", "backslashreplace").decode()
