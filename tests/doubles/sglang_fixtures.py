"""Fixtures for anything that talks to SGLang: the double, and the real server where there is one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from attrs import frozen
from sglang_double import SGLangDouble

StartDouble = Callable[..., Awaitable[SGLangDouble]]


@pytest.fixture
async def start_double() -> AsyncIterator[StartDouble]:
    """Start doubles with ``await start_double(frontend="python", ...)``.

    When the test is over, none may have seen a call that breaks SGLang's rules, and none may still be at work.
    """
    doubles: list[SGLangDouble] = []

    async def start(**options: Any) -> SGLangDouble:
        double = SGLangDouble(**options)
        doubles.append(double)
        await stack.enter_async_context(double.serving())
        return double

    async with AsyncExitStack() as stack:
        yield start
        assert [violation for double in doubles for violation in double.rules.violations] == []
        assert [rid for double in doubles for rid in double.jobs] == []


@pytest.fixture(params=["rust", "python"])
def frontend(request: pytest.FixtureRequest) -> str:
    """Each of SGLang's HTTP front ends."""
    value: str = request.param
    return value


@pytest.fixture(params=["batch", "calls"])
def fanout(request: pytest.FixtureRequest) -> str:
    """Each way to send branches."""
    value: str = request.param
    return value


REAL = "OPENJEV_TEST_SGLANG"
"""A URL of a running SGLang that serves SmolLM2, or a directory with ``venv`` and the checkpoint ``smollm2``."""
REAL_KEY = "key-of-the-tests"


@frozen
class RealSGLang:
    """A real server that serves SmolLM2-135M.

    Attributes:
        url: Where it listens.
        api_key: The key that it asks for.
        frontend: Whose HTTP contract it keeps.
        model_dir: Its checkpoint with the tokenizer, when it was launched here.
        launcher: The process that launched it, when it was launched here.
    """

    url: str
    api_key: str | None
    frontend: str
    model_dir: Path | None = None
    launcher: subprocess.Popen[str] | None = None
    vocab_size: int = 49152


@contextmanager
def launched_real_sglang(directory: Path, frontend: str, *flags: str) -> Iterator[RealSGLang]:
    """Launch the server in ``directory`` the way the product does, with further flags of SGLang."""
    environment = {
        **os.environ,
        "OPENJEV_SGLANG_PYTHON": str(directory / "venv/bin/python"),
        "OPENJEV_MODEL": str(directory / "smollm2"),
        "OPENJEV_PROFILE": "smollm2-cpu",
        "OPENJEV_FRONTEND": frontend,
        "OPENJEV_BACKEND_API_KEY": REAL_KEY,
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }
    launcher = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "launching_api.py"), "--log-level", "warning", *flags],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert launcher.stdout is not None
    try:
        lines = []
        while not (line := launcher.stdout.readline()).startswith("ready"):
            assert line, "".join(lines)
            lines.append(line)
        url = line.split()[1]
        yield RealSGLang(url, REAL_KEY if frontend == "python" else None, frontend, directory / "smollm2", launcher)
    finally:
        launcher.terminate()
        launcher.stdout.close()
        launcher.wait(60)


@pytest.fixture(scope="session", params=["rust", "python"])
def real_sglang(request: pytest.FixtureRequest) -> Iterator[RealSGLang]:
    """The real server, one front end after the other; with a URL, only the front end that it has."""
    where = os.environ.get(REAL)
    if where is None:
        pytest.skip(f"{REAL} names no server")
    if not where.startswith("http"):
        with launched_real_sglang(Path(where), request.param) as server:
            yield server
        return
    info = httpx.get(f"{where}/server_info").json()
    found = "rust" if "max_context_length" in info else "python"
    if found != request.param:
        pytest.skip(f"the server at {where} has the {found} front end")
    yield RealSGLang(where, os.environ.get("OPENJEV_BACKEND_API_KEY"), found)
