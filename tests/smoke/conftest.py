"""What the smoke tests share."""

from __future__ import annotations

import socket

import pytest


@pytest.fixture
def free_port():
    """A port on which nothing listens: it stays bound, without listening, for the length of the test."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
