"""What every test may use."""

from __future__ import annotations

import signal

import hypothesis
import pytest

# The same examples on every run, and none too slow for a busy machine.
hypothesis.settings.register_profile(
    "openjev", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("openjev")

pytest_plugins = ["llamacpp_fixtures", "sglang_fixtures", "vllm_fixtures"]


@pytest.fixture
def anyio_backend() -> str:
    """Async tests (``pytest.mark.anyio``) run on asyncio."""
    return "asyncio"


def pytest_configure(config):
    """Let Ctrl-C reach the processes that tests start, also where this one was started with it ignored.

    A shell ignores it for what runs in the background, and children inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
