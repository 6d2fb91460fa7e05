"""The application on a real socket, on an event loop of its own in another thread."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager, suppress

from attrs import frozen
from toy_model import ToyBackend, toy_model

from openjev_core.api.app import create_app
from openjev_core.api.serving.server import address_of, bound_socket, serve
from openjev_core.plugins.registry import load_registry
from openjev_core.settings import Settings
from openjev_core.testing.scripted import engine_on


@frozen
class LiveServer:
    """A running server.

    Attributes:
        url: Where.
        host, port: The same, for raw sockets.
        backend: The toy behind it.
        engine, app: What it serves.
        loop: The loop that it runs on.
        stop: Begins a graceful stop.
    """

    url: str
    host: str
    port: int
    backend: ToyBackend
    engine: object
    app: object
    loop: asyncio.AbstractEventLoop
    stop: object


@contextmanager
def live_server(*, registry=None, backend=None, tracing=None, **settings):
    """Serve a toy model with these settings for the length of the block."""
    settings = Settings(**{"port": 0, "grace_period": 2.0, **settings})
    backend = backend or ToyBackend()
    ready = threading.Event()
    found = {}

    async def main():
        engine = engine_on(toy_model(backend), settings, registry or load_registry())
        app = create_app(engine, tracing=tracing)
        stop = asyncio.Event()
        with bound_socket(settings) as sock:
            loop = asyncio.get_running_loop()
            host, port = sock.getsockname()[:2]

            def started():
                found["server"] = LiveServer(
                    address_of(sock, settings), host, port, backend, engine, app, loop,
                    lambda: loop.call_soon_threadsafe(stop.set),
                )  # fmt: skip
                ready.set()

            await serve(app, settings, sock, stop, started)

    def run():
        try:
            asyncio.run(main())
        except BaseException as error:
            found["error"] = error
            raise
        finally:
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(20)
    if "server" not in found:
        raise found["error"]
    try:
        yield found["server"]
    finally:
        with suppress(RuntimeError):  # the loop is closed where the test has stopped the server
            found["server"].stop()
        thread.join(20)
        assert not thread.is_alive()
