"""What every test may use."""

from __future__ import annotations

import pytest

pytest_plugins = ["sglang_fixtures"]


@pytest.fixture
def anyio_backend() -> str:
    """Async tests (``pytest.mark.anyio``) run on asyncio."""
    return "asyncio"
