"""What is at work in the double."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Literal

from attrs import define, field
from sglang_double_faults import Fault
from sglang_double_http import HttpRequest


@define(eq=False)
class Job:
    """One prompt of one call."""

    rid: str
    prompt: list[int]
    packed: bytes
    labels: list[int]
    labelled: bool
    call: Call
    state: Literal["waiting", "running", "done"] = "waiting"
    cached: int = 0
    timer: asyncio.TimerHandle | None = None
    result: dict[str, Any] | None = None


@define(eq=False)
class Call:
    """One ``/generate``."""

    request: HttpRequest
    batch: bool
    fault: Fault | None = None
    jobs: list[Job] = field(factory=list)
    at: float = field(factory=time.monotonic)

    @property
    def routing_key(self) -> str | None:
        """What a router in front of several workers would route by."""
        return self.request.headers.get("x-smg-routing-key")
