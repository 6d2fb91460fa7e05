"""A server for tests that change nothing about it, and the smallest valid request."""

from __future__ import annotations

import pytest
from live_server import live_server


@pytest.fixture(scope="session")
def server():
    """One live server for all tests that only send it requests."""
    with live_server(max_body_bytes=1024 * 1024, body_timeout=1.0) as running:
        yield running
