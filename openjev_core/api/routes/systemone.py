"""``POST /v1/systemone``: evaluate a request."""

from __future__ import annotations

from openjev_core.api.body import read_body
from openjev_core.api.exchange import Exchange, Header, Reply
from openjev_core.api.incoming import Incoming
from openjev_core.api.json_reply import json_reply
from openjev_core.api.running import Running
from openjev_core.engine.engine import Engine
from openjev_core.engine.evaluation import Evaluation


async def request_body(engine: Engine, exchange: Exchange, incoming: Incoming) -> bytes:
    """A request's body.

    Raises:
        HttpError: It was refused before it was read as JSON.
        ClientGone: The client went away.
    """
    limit, seconds = engine.limits.max_body_bytes, engine.settings.body_timeout
    return await read_body(incoming, exchange.headers, limit=limit, seconds=seconds)


class SystemOne:
    """The route's handler.

    Args:
        engine: Evaluates.
        running: Where each evaluation is entered, to be ended by a hang-up or a stop.
    """

    def __init__(self, engine: Engine, running: Running) -> None:
        self._engine = engine
        self._running = running

    async def __call__(self, exchange: Exchange, incoming: Incoming) -> Reply:
        """Evaluate and answer."""
        body = await request_body(self._engine, exchange, incoming)
        work = self._engine.evaluate_body(body, request_id=exchange.request_id, structured=exchange.note)
        evaluation = await self._running.until_hang_up(incoming, work)
        exchange.evaluation = evaluation
        return json_reply(200, evaluation.body(), evaluation_headers(evaluation))


def evaluation_headers(evaluation: Evaluation) -> tuple[Header, ...]:
    """What an evaluation tells beside its body."""
    timings = evaluation.timings
    timing = (
        f"prepare;dur={timings.prepare * 1000:.2f}, "
        f"prefill;dur={timings.prefill * 1000:.2f}, "
        f"branches;dur={timings.branches * 1000:.2f}"
    )
    headers = [
        (b"x-openjev-model", header_text(evaluation.model)),
        (b"x-openjev-prefix-tokens", b"%d" % evaluation.usage.prefix_tokens),
        (b"server-timing", timing.encode()),
    ]
    if evaluation.usage.cached_tokens is not None:
        headers.append((b"x-openjev-cached-tokens", b"%d" % evaluation.usage.cached_tokens))
    return tuple(headers)


def header_text(text: str) -> bytes:
    """``text`` as a header's value: what a header cannot hold is spelled out."""
    visible = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return visible.encode("ascii", "backslashreplace")
