"""Stopping work that nobody waits for, without making anybody wait for that."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from attrs import define, field

from openjev_core.backends.sglang.client import SGLangClient
from openjev_core.errors import BackendError

TIMEOUT = 2.0
"""Seconds for one ``/abort_request``."""
BACKLOG = 4096
"""Rids that wait to be aborted. Beyond that the oldest are dropped: their connections are closed anyway."""


@define(eq=False)
class Aborts:
    """Rids whose connection was closed before the answer, told to SGLang one after another by one task.

    A closed connection aborts on both front ends, on the Python one only after seconds; there ``/abort_request`` does
    it at once. Where the route does not exist (Rust, 404) or wants another key (401) it is not tried again.
    """

    client: SGLangClient
    rids: deque[str] = field(factory=lambda: deque(maxlen=BACKLOG))
    supported: bool = True
    task: asyncio.Task[None] | None = None

    def add(self, rids: Iterable[str]) -> None:
        """Abort these, later."""
        if not self.supported:
            return
        self.rids.extend(rids)
        if self.task is None or self.task.done():
            self.task = asyncio.get_running_loop().create_task(self.drain())

    async def drain(self) -> None:
        """Send what is waiting; drop all of it when SGLang does not answer: it is not working either."""
        while self.rids and self.supported:
            rid = self.rids.popleft()
            try:
                status = await self.client.abort(rid, seconds=TIMEOUT)
            except BackendError:
                self.rids.clear()
                return
            self.supported = status not in (401, 403, 404, 405)

    async def aclose(self) -> None:
        """Give what is waiting a moment, then stop."""
        if self.task is not None:
            _, running = await asyncio.wait([self.task], timeout=TIMEOUT)
            for task in running:
                task.cancel()
