"""A server of the toy model in a process of its own: ``python serve_toy.py SECONDS NAME=VALUE...``.

Prints its URL once it accepts requests. ``SECONDS`` is how long each read takes; the rest are settings.
"""

from __future__ import annotations

import asyncio
import sys

from toy_model import ToyBackend, toy_model

from openjev_core.api.app import create_app
from openjev_core.api.serving.process import run_on_loop, stop_on_signals
from openjev_core.api.serving.server import address_of, bound_socket, serve
from openjev_core.plugins.registry import load_registry
from openjev_core.settings import load_settings
from openjev_core.testing.scripted import engine_on


async def main(seconds, flags):
    settings = load_settings({}, flags=flags).settings
    stop = asyncio.Event()
    engine = engine_on(toy_model(ToyBackend(seconds=seconds)), settings, load_registry())
    with stop_on_signals(stop), bound_socket(settings) as sock:
        url = address_of(sock, settings)
        await serve(create_app(engine), settings, sock, stop, lambda: print(url, flush=True))


if __name__ == "__main__":
    run_on_loop(main(float(sys.argv[1]), dict(argument.split("=", 1) for argument in sys.argv[2:])))
