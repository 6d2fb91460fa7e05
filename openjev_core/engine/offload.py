"""Running work off the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

T = TypeVar("T")


async def off_the_loop(work: Callable[[], T]) -> T:
    """Run work that may call a plugin in a thread; a cancelled caller leaves it to end by itself.

    A plugin's code may hang, and tokenizing a long state takes a while: neither may hold up other requests.
    """
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
