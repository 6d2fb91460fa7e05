"""Fixtures for anything that talks to vLLM: the double, and the real server where there is one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from attrs import frozen
from vllm_double import VLLMDouble

StartVLLM = Callable[..., Awaitable[VLLMDouble]]


@pytest.fixture
async def start_vllm() -> AsyncIterator[StartVLLM]:
    """Start doubles with ``await start_vllm(latency=0.1, ...)``.

    When the test is over, none may have seen a call that breaks the rules, and none may still be at work.
    """
    doubles: list[VLLMDouble] = []

    async def start(**options: Any) -> VLLMDouble:
        double = VLLMDouble(**options)
        doubles.append(double)
        await stack.enter_async_context(double.serving())
        return double

    async with AsyncExitStack() as stack:
        yield start
        assert [violation for double in doubles for violation in double.rules.violations] == []
        assert [call for double in doubles for call in double.running] == []


REAL = "OPENJEV_TEST_VLLM"
"""A URL of a running vLLM that serves SmolLM2 in float32, or a directory with ``venv`` and the checkpoint
``smollm2``."""
REAL_KEY = "key-of-the-tests"
START_SECONDS = 300


@frozen
class RealVLLM:
    """A real server that serves SmolLM2-135M.

    Attributes:
        url: Where it listens.
        api_key: The key that it asks for.
        model_dir: Its checkpoint with the tokenizer.
        process: It, when it was launched here.
    """

    url: str
    api_key: str | None
    model_dir: Path
    process: subprocess.Popen[bytes] | None = None

    def running(self) -> int:
        """Prompts that it works on or that wait, as it counts them."""
        metrics = httpx.get(f"{self.url}/metrics").text
        names = ("vllm:num_requests_running{", "vllm:num_requests_waiting{")
        return sum(int(float(line.split()[-1])) for line in metrics.splitlines() if line.startswith(names))


@contextmanager
def launched_real_vllm(directory: Path, *, port: int | None = None) -> Iterator[RealVLLM]:
    """Launch the server in ``directory``; it has answered a first call, in which it compiles, when the block begins.

    Args:
        directory: Holds ``venv`` and the checkpoint ``smollm2``.
        port: Where it listens; a free one when ``None``.
    """
    with socket.socket() as free:
        # Connections to the server before may still linger there.
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port or 0))
        port = free.getsockname()[1]
    flags = "--served-model-name smollm2 --host 127.0.0.1 --max-model-len 4096 --enforce-eager"
    command = [directory / "venv/bin/vllm", "serve", directory / "smollm2", *flags.split()]
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    process = subprocess.Popen(
        [*command, "--port", str(port), "--api-key", REAL_KEY, "--dtype", "float32", "--enable-prompt-tokens-details"],
        env={**os.environ, **offline, "VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=directory,  # an interpreter that vLLM starts imports from where it is
    )
    server = RealVLLM(f"http://127.0.0.1:{port}", REAL_KEY, directory / "smollm2", process)
    try:
        wait_for(server)
        yield server
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        process.wait(60)


def wait_for(server: RealVLLM) -> None:
    """Until it answers a first call."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert server.process is None or server.process.poll() is None, "the server ended while it started"
        try:
            if httpx.get(f"{server.url}/health").is_success:
                break
        except httpx.HTTPError:
            pass
        time.sleep(1)
    headers = {"authorization": f"Bearer {server.api_key}"}
    body = {"prompt": "Hello", "max_tokens": 1}
    httpx.post(f"{server.url}/v1/completions", json=body, headers=headers, timeout=START_SECONDS).raise_for_status()


@pytest.fixture(scope="session")
def real_vllm() -> Iterator[RealVLLM]:
    """The real server."""
    where = os.environ.get(REAL)
    if where is None:
        pytest.skip(f"{REAL} names no server")
    if not where.startswith("http"):
        with launched_real_vllm(Path(where)) as server:
            yield server
        return
    key = os.environ.get("OPENJEV_BACKEND_API_KEY")
    models = httpx.get(f"{where}/v1/models", headers={"authorization": f"Bearer {key}"}).json()
    server = RealVLLM(where, key, Path(models["data"][0]["root"]))
    wait_for(server)
    yield server
