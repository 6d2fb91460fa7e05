"""Whether the backend answers, asked once a second at most."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from openjev_core.errors import BackendError, BackendUnavailable

INTERVAL = 1.0
"""Seconds for which an outcome is passed on instead of asking again."""

PATIENCE = 5.0
"""Seconds after which a backend that has not answered counts as unavailable."""


class Health:
    """The backend's health, at most ``INTERVAL`` old.

    Args:
        check: Asks the backend; see :class:`openjev_core.reader.Model`.
    """

    def __init__(self, check: Callable[[], Awaitable[None]]) -> None:
        self._check = check
        self._lock = asyncio.Lock()
        self._asked_at = float("-inf")
        self._outcome: BackendError | None = None

    async def check(self) -> None:
        """Return when the backend answers as it should.

        Raises:
            BackendError: It does not, or did not within the last second.
        """
        async with self._lock:
            if time.monotonic() - self._asked_at >= INTERVAL:
                self._outcome = await self._ask()
                self._asked_at = time.monotonic()
        if self._outcome is not None:
            # Raised again and again, it would gather a longer traceback each time.
            raise self._outcome.with_traceback(None)

    async def _ask(self) -> BackendError | None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._check()
        except TimeoutError:
            return BackendUnavailable(f"the backend did not answer a probe within {PATIENCE:g} seconds")
        except BackendError as error:
            return error
        return None
