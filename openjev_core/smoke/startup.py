"""Waiting for a server to start."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from attrs import frozen

from openjev_core.smoke.calls import Call, Service
from openjev_core.smoke.expectations import expect, json_of, object_with
from openjev_core.smoke.verdicts import Mismatch

POLL_SECONDS = 2.0
POLL_PATIENCE = 15.0
REPEAT_SECONDS = 15.0
"""How often progress is told while nothing changes."""

STARTING = (408, 425, 429)
"""Beside 5xx: statuses of a server, or of what stands before it, that may yet become ready."""

Progress = Callable[[str], None]


@frozen
class Ready:
    """A server that answers.

    Attributes:
        seconds: How long it took, from the first call on.
        health: What ``/health`` said.
    """

    seconds: float
    health: dict[str, Any]


class NeverReady(Exception):
    """The server did not become ready.

    Attributes:
        call: The last call to ``/health``.
    """

    def __init__(self, message: str, call: Call) -> None:
        super().__init__(message)
        self.call = call


async def wait_until_ready(service: Service, patience: float, progress: Progress) -> Ready:
    """Ask ``/health`` until it says ok.

    No connection and 5xx are a start-up: an idle deployment answers 503 while its first container starts.

    Raises:
        NeverReady: The time is up, or the address answers something that no waiting will turn into this server.
    """
    began = time.monotonic()
    told: tuple[str, float] = ("", 0.0)
    while True:
        left = began + patience - time.monotonic()
        call = await service.call("GET", "/health", patience=max(min(POLL_PATIENCE, left), 0.1))
        waited = time.monotonic() - began
        if call.status == 200 and call.fault is None:  # noqa: PLR2004 - HTTP's own number
            return Ready(waited, health_of(call))
        if call.status is not None and call.status < 500 and call.status not in STARTING and call.fault is None:  # noqa: PLR2004 - HTTP's own number
            where = f", which points to {call.headers['location']}" if "location" in call.headers else ""
            raise NeverReady(f"expected /health to say 200 or 503, found {call.outcome}{where}", call)
        if waited + POLL_SECONDS > patience:
            raise NeverReady(f"not ready after {waited:.0f} seconds: {call.outcome}", call)
        if call.outcome != told[0] or waited - told[1] >= REPEAT_SECONDS:
            told = (call.outcome, waited)
            progress(f"waiting for {service.url}, {waited:.0f} of {patience:.0f} seconds: {call.outcome}")
        await asyncio.sleep(POLL_SECONDS)


def health_of(call: Call) -> dict[str, Any]:
    """The body of a health reply.

    Raises:
        NeverReady: It is not this server's.
    """
    try:
        reply = json_of(call, 200)
        expect(isinstance(reply, dict), "an object", reply)
        health: dict[str, Any] = reply
        for name in ("status", "startup_seconds", "model", "backend"):
            expect(name in health, f"a field {name}", health)
        expect(health["status"] == "ok", "the status ok", health["status"])
        expect(isinstance(health["model"], str), "model to be a string", health["model"])
        seconds = health["startup_seconds"]
        expect(type(seconds) in (int, float) and seconds >= 0, "startup_seconds to be a number", seconds)
        backend = object_with(health["backend"], "backend", required=("name", "status"))
        expect(isinstance(backend["name"], str), "the backend's name to be a string", backend["name"])
    except Mismatch as error:
        raise NeverReady(f"/health answers, but not as this server: {error}", call) from None
    return health
