"""``POST /v1/prompts``: what the model would read, without reading it."""

from __future__ import annotations

from openjev_core.api.exchange import Exchange, Reply
from openjev_core.api.incoming import Incoming
from openjev_core.api.json_reply import json_reply
from openjev_core.api.routes.systemone import request_body
from openjev_core.engine.engine import Engine


class Prompts:
    """The route's handler."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def __call__(self, exchange: Exchange, incoming: Incoming) -> Reply:
        """Prepare and show."""
        body = await request_body(self._engine, exchange, incoming)
        return json_reply(200, await self._engine.preview_body(body, structured=exchange.note))
