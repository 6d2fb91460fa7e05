"""Serving from an SGLang that this process launches: both start, serve and end together."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

import attrs

from openjev_core.api.serving.process import Announce, run_on_loop, serve_socket, stop_on_signals
from openjev_core.api.serving.server import bound_socket
from openjev_core.ending import leave
from openjev_core.engine_type import Progress
from openjev_core.errors import BackendUnavailable
from openjev_core.launch.profiles import find_profile, model_source
from openjev_core.launch.sglang_process import launched_sglang
from openjev_core.plugins.registry import Registry
from openjev_core.prompts.tokenizer import tokenizer_directory
from openjev_core.settings import Settings


def run_launched(
    settings: Settings,
    sglang_flags: Sequence[str],
    *,
    registry: Registry,
    progress: Progress,
    announce: Announce,
) -> None:
    """Start SGLang, serve from it until SIGTERM or SIGINT, and stop it.

    Args:
        settings: With ``sglang_python``, and otherwise as for serving.
        sglang_flags: The caller's flags for SGLang.
        registry: The question types.
        progress: Takes lines on what the start is waiting for, and SGLang's own.
        announce: Called once, when the server accepts requests.

    Raises:
        StartupError: The address is taken, or one of the two does not start.
        SettingsError: A setting or one of SGLang's flags is wrong.
        BackendUnavailable: SGLang ended while it was served from.
    """
    with bound_socket(settings) as sock:
        run_on_loop(launch_and_serve(settings, sglang_flags, sock, registry, progress, announce))


async def launch_and_serve(  # noqa: PLR0917 - run_launched's arguments, and a socket
    settings: Settings,
    sglang_flags: Sequence[str],
    sock: socket.socket,
    registry: Registry,
    progress: Progress,
    announce: Announce,
) -> None:
    """See :func:`run_launched`."""
    stop = asyncio.Event()

    async def launch() -> bool:
        """Launch SGLang and serve from it; returns whether the server ever accepted requests."""
        source, revision = model_source(settings, find_profile(settings.profile))
        progress(f"loading the tokenizer of {source}")
        directory = str(await asyncio.to_thread(tokenizer_directory, source, revision))
        async with launched_sglang(settings, sglang_flags, tokenizer_dir=directory, log=progress) as sglang:
            ready.set()
            connected = attrs.evolve(
                settings,
                engine="sglang",
                connect=sglang.url,
                backend_api_key=sglang.api_key,
                model=directory,
                revision=None,
            )
            serving = asyncio.create_task(
                serve_socket(connected, sock, registry=registry, progress=progress, announce=announce, stop=stop)
            )
            ended = asyncio.create_task(sglang.wait())
            await asyncio.wait((serving, ended), return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                ended.cancel()
                return await serving
            # Evaluations that still run fail, because SGLang's connections are closed. Then the server stops.
            stop.set()
            await asyncio.wait((serving,))
            raise BackendUnavailable(f"SGLang ended, and this server with it: {ended.result()}")

    ready = asyncio.Event()
    with stop_on_signals(stop):
        launching = asyncio.create_task(launch())
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait((launching, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if stop.is_set() and not ready.is_set():
            launching.cancel()
        try:
            served = await launching
        except asyncio.CancelledError:
            served = False
        if not served:
            leave()
