"""How long an evaluation may take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from openjev_core.errors import DeadlineExceeded


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    """Stop the block after ``seconds``.

    Raises:
        DeadlineExceeded: It was stopped.
    """
    try:
        async with asyncio.timeout(seconds) as deadline:
            yield
    except TimeoutError:
        if not deadline.expired():
            raise
        msg = f"the evaluation took longer than request_timeout ({seconds:g} s) and was stopped"
        raise DeadlineExceeded(msg) from None
