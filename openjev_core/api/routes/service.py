"""What the server tells about itself: models, limits, health."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs

from openjev_core.api.exchange import Exchange, Reply
from openjev_core.api.incoming import Incoming
from openjev_core.api.json_reply import json_reply
from openjev_core.engine.engine import Engine
from openjev_core.errors import BackendError

NO_STORE = ((b"cache-control", b"no-store"),)

DEMO_NOTE = "a small demo model: it shows that everything works and is no classifier"


def models(engine: Engine) -> Reply:
    """``GET /v1/models``, in TypeSafe's shape and in OpenAI's at once."""
    model = engine.model
    released = model.release_date
    description = f"{model.public_name} on {model.backend.name}"
    if model.demo:
        description += f"; {DEMO_NOTE}"
    if released is None:
        # Clients want a date, and may parse it.
        released = datetime.now(UTC).date().isoformat()
        description += "; the date is that of this server's start, the model's own is not known"
    names = {"jev-latest": f"this server's one model: {description}", model.public_name: description}
    return json_reply(
        200,
        {
            "models": [{"name": name, "description": text, "release_date": released} for name, text in names.items()],
            "object": "list",
            "data": [{"id": name, "object": "model", "owned_by": "openjev"} for name in names],
        },
    )


def effective_limits(engine: Engine) -> Reply:
    """``GET /v1/limits``: those of the whole server, of which a worker has its share."""
    limits, workers = engine.limits, engine.settings.workers
    whole = attrs.evolve(
        limits,
        max_concurrent_requests=limits.max_concurrent_requests * workers,
        max_concurrent_branches=limits.max_concurrent_branches * workers,
    )
    return json_reply(200, attrs.asdict(whole))


def live() -> Reply:
    """``GET /health/live``: the process serves; nothing is asked of anyone."""
    return json_reply(200, {"status": "ok"}, NO_STORE)


class Health:
    """``GET /health``: whether the backend answers.

    Args:
        engine: Asked at each request; it limits by itself how often it asks the backend.
        startup_seconds: How long the start took.
    """

    def __init__(self, engine: Engine, startup_seconds: float) -> None:
        self._engine = engine
        self._startup_seconds = round(startup_seconds, 3)

    async def __call__(self, exchange: Exchange, _incoming: Incoming) -> Reply:
        """200 when the backend answers, 503 when it does not."""
        try:
            await self._engine.check()
        except BackendError as error:
            exchange.error = error
            return self._report(503, "unavailable", ((b"retry-after", b"2"),))
        return self._report(200, "ok")

    def _report(self, code: int, status: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Reply:
        body = {
            "status": status,
            "startup_seconds": self._startup_seconds,
            "model": self._engine.model.public_name,
            "backend": {"name": self._engine.model.backend.name, "status": status},
        }
        if self._engine.model.demo:
            body["note"] = DEMO_NOTE
        return json_reply(code, body, (*NO_STORE, *headers))
