"""The real vLLM stops, dies and comes back: nothing waits for it for ever, and nothing wrong is answered."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from vllm_fixtures import REAL, launched_real_vllm

from openjev_core.backends.protocol import Branch
from openjev_core.backends.vllm.opening import open_vllm
from openjev_core.errors import BackendError, BackendUnavailable
from openjev_core.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.vllm]


@pytest.fixture
def directory():
    where = os.environ.get(REAL, "http")
    if where.startswith("http"):
        pytest.skip(f"{REAL} names no directory")
    return Path(where)


def connected(server):
    return open_vllm(server.url, Settings(backend_api_key=server.api_key), vocab_size=49152)


SHORT = [Branch((8, 9), (49, 50)), Branch((10,), (49, 50))]
LONG = [Branch((number,) * 1000, (49, 50)) for number in range(100, 120)]
"""A minute of work."""


async def read(backend, seconds=60, branches=SHORT):
    async with asyncio.timeout(seconds), backend.prefix((5, 6, 7), key="state") as warm:
        readings, _ = await warm.read(branches)
    return [one.prompt_tokens for one in readings]


def family(server):
    main = psutil.Process(server.process.pid)
    return [main, *main.children(recursive=True)]


async def test_a_server_that_stops_goes_on_and_dies_and_comes_back(directory):
    """In one go, since a start takes a minute."""
    with ExitStack() as first, ExitStack() as second:
        server = first.enter_context(launched_real_vllm(directory))
        async with connected(server) as backend:
            assert [5, 4] == await read(backend)

            members = family(server)
            for member in members:
                member.send_signal(signal.SIGSTOP)
            try:
                with pytest.raises(BackendUnavailable, match="vLLM has not answered a one-token call for 4 s"):
                    await backend.check()
                with pytest.raises(TimeoutError):
                    await read(backend, 3)
                assert backend.slots.free == backend.slots.size
            finally:
                for member in members:
                    member.send_signal(signal.SIGCONT)
            await backend.check()
            assert [5, 4] == await read(backend)

            # The model's process alone: the server tells of it while it ends, or is gone.
            asked = asyncio.create_task(read(backend, branches=LONG))
            await asyncio.sleep(2)
            (engine,) = [one for one in members if "EngineCore" in " ".join(one.cmdline())]
            engine.kill()
            with pytest.raises(BackendError):
                await asked
            await asyncio.to_thread(psutil.wait_procs, members, 30)
            assert [] == [one for one in members if one.is_running()]
            with pytest.raises(BackendUnavailable, match="vLLM cannot be reached"):
                await read(backend)
            assert backend.slots.free == backend.slots.size

            port = int(server.url.rpartition(":")[2])
            await asyncio.to_thread(second.enter_context, launched_real_vllm(directory, port=port))
            assert [5, 4] == await read(backend)
            await backend.check()
