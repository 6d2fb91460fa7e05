"""Waiting for something to become true."""

from __future__ import annotations

import asyncio
import time


async def until(condition, seconds=20):
    """Return once ``condition()`` is true; an error after ``seconds``."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.001)


def eventually(condition, seconds=10):
    """Whether ``condition()`` becomes true, for tests that are no coroutines."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False
