"""Waiting for something to become true."""

from __future__ import annotations

import asyncio


async def until(condition, seconds=20):
    """Return once ``condition()`` is true; an error after ``seconds``."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.001)
