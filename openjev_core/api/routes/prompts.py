"""``POST /v1/prompts``: what the model would read, without reading it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openjev_core.api.exchange import Exchange, Reply
from openjev_core.api.incoming import Incoming
from openjev_core.api.json_reply import json_reply
from openjev_core.api.routes.systemone import read_request
from openjev_core.engine.engine import Engine
from openjev_core.engine.evaluation import Preview


class Prompts:
    """The route's handler."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def __call__(self, exchange: Exchange, incoming: Incoming) -> Reply:
        """Prepare and show."""
        request = await read_request(self._engine, exchange, incoming)
        return json_reply(200, preview_body(await self._engine.preview(request)))


def preview_body(preview: Preview) -> dict[str, Any]:
    """A preview as JSON."""
    return {
        "prefix": preview.prefix,
        "prefix_tokens": tokens_body(preview.prefix_tokens),
        "branches": [
            {
                "question_id": branch.question_id,
                "readout": branch.readout,
                "labels": dict(branch.labels),
                "prompt": branch.prompt,
                "tokens": tokens_body(branch.tokens),
            }
            for branch in preview.branches
        ],
    }


def tokens_body(tokens: Sequence[tuple[int, str]]) -> list[dict[str, Any]]:
    """Tokens as JSON: a token may be part of a character only, and then shows as U+FFFD."""
    return [{"id": token, "text": text} for token, text in tokens]
