"""An engine behind a real socket, on an event loop of its own in another thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from openjev_core.api.app import create_app
from openjev_core.api.serving.server import address_of, bound_socket, serve
from openjev_core.engine.engine import Engine
from openjev_core.settings import Settings

PATIENCE = 20.0


@contextmanager
def live_server(make_engine: Callable[[], Engine]) -> Iterator[str]:
    """Serve an engine on a free loopback port for the length of the block.

    Args:
        make_engine: Called on the server's own event loop.

    Yields:
        The base URL.
    """
    ready, accepting = threading.Event(), threading.Event()
    found: dict[str, str] = {}
    running: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Event]] = {}

    async def main() -> None:
        settings = Settings(port=0, grace_period=1.0)
        stop = asyncio.Event()
        running["server"] = asyncio.get_running_loop(), stop
        with bound_socket(settings) as sock:
            found["url"] = address_of(sock, settings)
            await serve(create_app(make_engine()), settings, sock, stop, accept)

    def accept() -> None:
        accepting.set()
        ready.set()

    def run() -> None:
        try:
            asyncio.run(main())
        finally:
            ready.set()  # whoever waits must not wait for a server that failed

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait(PATIENCE)
    if not accepting.is_set():
        thread.join(1.0)  # until it has told why
        raise RuntimeError("the server did not start; the thread's traceback says why")
    loop, stop = running["server"]
    try:
        yield found["url"]
    finally:
        with suppress(RuntimeError):  # the server ended by itself, and its loop with it
            loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)
