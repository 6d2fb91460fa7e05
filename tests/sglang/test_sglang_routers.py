"""Behind a real router: warm-up and branches of an evaluation reach one worker.

``OPENJEV_TEST_ROUTER`` names a Python that has ``smg`` or ``sglang-router``. The workers are doubles, each of which
notes a branch whose warm-up it has not answered.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess

import httpx
import pytest
from sglang_double_model import logprob

from openjev_core.backends.protocol import Branch
from openjev_core.backends.sglang.opening import open_sglang
from openjev_core.settings import Settings

ROUTER = os.environ.get("OPENJEV_TEST_ROUTER")

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.sglang,
    pytest.mark.skipif(ROUTER is None, reason="OPENJEV_TEST_ROUTER names no Python with a router"),
]

LABELS = (4, 5, 6)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


async def has_workers(url):
    async with httpx.AsyncClient() as client:
        for _ in range(150):
            try:
                if (await client.get(f"{url}/v1/models")).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            await asyncio.sleep(0.2)
    raise AssertionError("the router found no worker")


def has_module(module):
    return subprocess.run([ROUTER, "-c", f"import {module}"], check=False, capture_output=True).returncode == 0


def start_router(module, policy, port, workers):
    command = [ROUTER, "-m", f"{module}.launch_router", "--host", "127.0.0.1", "--port", str(port), "--policy", policy]
    metrics = ["--prometheus-host", "127.0.0.1", "--prometheus-port", str(free_port())]
    urls = [worker.url for worker in workers]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([*command, *metrics, "--worker-urls", *urls], **quiet)


@pytest.fixture
async def routed(start_double, request):
    """A router with the policy before two workers."""
    module, policy = request.param
    if not has_module(module):
        pytest.skip(f"{ROUTER} has no {module}")
    workers = [await start_double(frontend="rust", latency=0.005) for _ in range(2)]
    port = free_port()
    router = start_router(module, policy, port, workers)
    try:
        url = f"http://127.0.0.1:{port}"
        await has_workers(url)
        yield url, workers
    finally:
        router.terminate()
        await asyncio.to_thread(router.wait, 20)


POLICIES = [
    ("smg", "consistent_hashing"),
    ("smg", "prefix_hash"),
    ("smg", "manual"),
    ("smg", "cache_aware"),
    ("sglang_router", "manual"),
    ("sglang_router", "cache_aware"),
]


@pytest.mark.parametrize("routed", POLICIES, indirect=True, ids=" ".join)
async def test_an_evaluation_stays_on_one_worker_and_states_are_spread(routed):
    url, workers = routed

    async def evaluate(backend, number):
        prefix = (number, *range(100))
        wanted = [Branch((n, n), LABELS) for n in range(5)]
        async with backend.prefix(prefix, key=f"state-{number}") as warm:
            readings, _ = await warm.read(wanted)
        assert [reading.logprobs for reading in readings] == [
            tuple(logprob((*prefix, *branch.suffix), label) for label in LABELS) for branch in wanted
        ]

    async with open_sglang(url, Settings(), vocab_size=49152) as backend:
        # Both routers read `token_ids_logprob` as one flat list, so a batch of different labels does not pass.
        assert backend.fanout == "calls"
        assert backend.facts.served_model_name == "smollm2"
        await asyncio.gather(*(evaluate(backend, number) for number in range(40)))
        await backend.check()
    assert [worker.rules.violations for worker in workers] == [[], []]
    assert min(worker.completed for worker in workers) > 0
