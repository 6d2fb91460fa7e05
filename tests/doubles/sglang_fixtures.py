"""Fixtures for anything that talks to SGLang: the double, and the real server where there is one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from sglang_double import SGLangDouble

StartDouble = Callable[..., Awaitable[SGLangDouble]]


@pytest.fixture
async def start_double() -> AsyncIterator[StartDouble]:
    """Start doubles with ``await start_double(frontend="python", ...)``.

    When the test is over, none may have seen a call that breaks SGLang's rules, and none may still be at work.
    """
    doubles: list[SGLangDouble] = []

    async def start(**options: Any) -> SGLangDouble:
        double = SGLangDouble(**options)
        doubles.append(double)
        await stack.enter_async_context(double.serving())
        return double

    async with AsyncExitStack() as stack:
        yield start
        assert [violation for double in doubles for violation in double.rules.violations] == []
        assert [rid for double in doubles for rid in double.jobs] == []


@pytest.fixture(params=["rust", "python"])
def frontend(request: pytest.FixtureRequest) -> str:
    """Each of SGLang's HTTP front ends."""
    value: str = request.param
    return value


@pytest.fixture(params=["batch", "calls"])
def fanout(request: pytest.FixtureRequest) -> str:
    """Each way to send branches."""
    value: str = request.param
    return value
