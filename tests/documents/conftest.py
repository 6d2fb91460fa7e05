"""A server on the demo model, as the README tells to start it."""

from __future__ import annotations

import pytest
from openjev_process import serving


@pytest.fixture(scope="session")
def demo_server():
    """The address of ``openjev serve``, nothing set but the port."""
    with serving() as child:
        yield child.wait_until_it_listens()
