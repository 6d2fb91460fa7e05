"""A refused request's text is let go of at once: nothing waits for Python's collector."""

from __future__ import annotations

import gc
import json

import httpx
import pytest
from live_server import live_server
from until import eventually

from openjev_core.errors import RequestError
from openjev_core.prompts.encoding import TooManyTokens

LONG = "a" * 1_000_000
NOUL = {"type": "noul", "instructions": "Is it?"}
SYSTEMONE = {"model": "jev-latest", "state": LONG, "questions": {"q": NOUL}}
DECISIONS = {"model": "jev-latest", "input": LONG, "questions": [{"type": "predicate", "instructions": "Is it?"}]}


def errors():
    """Those that are alive."""
    return [one for one in gc.get_objects() if isinstance(one, (RequestError, TooManyTokens))]


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("systemone", SYSTEMONE),
        ("systemone", {**SYSTEMONE, "questions": {"q": {**NOUL, "type": "none"}}}),
        ("decisions", DECISIONS),
        ("decisions", {**DECISIONS, "questions": [{"type": "none"}]}),
    ],
)
def test_no_error_outlives_its_reply(route, body):
    with live_server() as server, httpx.Client() as client:
        gc.collect()
        before = errors()
        gc.disable()
        try:
            for _ in range(3):
                reply = client.post(f"{server.url}/v1/{route}", content=json.dumps(body))
                assert reply.status_code in (400, 422)
            assert eventually(lambda: len(before) == len(errors()))
        finally:
            gc.enable()
