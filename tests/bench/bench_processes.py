"""Processes under measurement: started on one core, their CPU time read from the system, stopped by id."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
from attrs import frozen

DOUBLE = Path(__file__).parents[1] / "doubles" / "sglang_double.py"
ECHO = Path(__file__).with_name("echo_app.py")
LLAMACPP = Path(__file__).with_name("llamacpp_app.py")
SERVER_CORE, PEER_CORE = 0, 1
START_SECONDS = 90.0


@frozen
class Measured:
    """A running server.

    Attributes:
        name: For the table.
        url: Where it answers.
        process: It.
    """

    name: str
    url: str
    process: psutil.Process

    def cpu_seconds(self) -> float:
        """CPU time that it and its children have used."""
        family = [self.process, *self.process.children(recursive=True)]
        return sum(time.clock_gettime(cpu_clock(member.pid)) for member in family)

    def resident_bytes(self) -> int:
        """Its resident memory."""
        return self.process.memory_info().rss


def cpu_clock(pid):
    """The CPU clock of another process, in nanoseconds where the ticks of /proc are 10 ms: `clock_getcpuclockid`."""
    return (~pid << 3) | 2


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@contextmanager
def running(name, command, url, *, core=SERVER_CORE, environ=None, ready="/health"):
    """Start a server on one core, or with `core` None on all, and wait until it answers; end it with the block."""
    log = Path(os.environ.get("OPENJEV_BENCH_LOG", os.devnull)).open("ab")  # noqa: SIM115 - the child keeps it
    child = subprocess.Popen(
        [str(part) for part in command], env={**os.environ, **(environ or {})}, stdout=log, stderr=log
    )
    log.close()
    try:
        process = psutil.Process(child.pid)
        if core is not None:
            cores = os.cpu_count() or 1
            process.cpu_affinity([core % cores])
        wait_until_ready(child, url + ready, name)
        yield Measured(name, url, process)
    finally:
        child.terminate()
        try:
            child.wait(15)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def wait_until_ready(child, url, name):
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if child.poll() is not None:
            raise RuntimeError(f"{name} ended with {child.returncode} while starting")
        try:
            if httpx.get(url, timeout=5).status_code < 500:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"{name} did not answer {url} within {START_SECONDS:g} s")


@contextmanager
def double(*options):
    """The SGLang double, on the other core."""
    port = free_port()
    command = [sys.executable, DOUBLE, "--port", port, *options]
    with running("double", command, f"http://127.0.0.1:{port}", core=PEER_CORE) as server:
        yield server


@contextmanager
def openjev(*options, environ=None, core=SERVER_CORE, python=sys.executable, name="openjev"):
    """`openjev serve` with these options, of the environment that `python` belongs to."""
    port = free_port()
    command = [Path(python).with_name("openjev"), "serve", "--port", port, *options]
    url = f"http://127.0.0.1:{port}"
    with running(name, command, url, core=core, environ=environ, ready="/health/live") as server:
        yield server


@contextmanager
def echo():
    """A bare hypercorn application that parses and echoes JSON: the ceiling of the stack."""
    port = free_port()
    command = [sys.executable, ECHO, port]
    with running("echo", command, f"http://127.0.0.1:{port}", ready="/") as server:
        yield server


@contextmanager
def llm2jev(python, model, url):
    """llm2jev, from an environment of its own that has it."""
    port = free_port()
    command = [python, "-m", "llm2jev", "--model", model, "--backend", "sglang", "--url", url, "--port", port]
    with running("llm2jev", command, f"http://127.0.0.1:{port}") as server:
        yield server


@contextmanager
def llamacpp(model, *, threads, batch, slots=1, waiting=None):
    """llama.cpp's own server on all cores; `waiting` are variables that say how its threads wait."""
    port = free_port()
    command = [sys.executable, LLAMACPP, model, port, "--threads", threads, "--batch", batch, "--slots", slots]
    with running("llama.cpp", command, f"http://127.0.0.1:{port}", core=None, environ=waiting) as server:
        yield server
