"""llama.cpp's own HTTP server in this process, through xllamacpp.

Nothing is imported from xllamacpp before an engine starts: it is an optional extra.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx

from openjev_core.backends.llamacpp.client import headers
from openjev_core.errors import StartupError

BATCH = 256
"""Tokens that llama.cpp computes before it looks up, so also what a cancellation waits for. On two cores SmolLM2
prefills 600 tokens in 1.81 s with 256, 1.83 s with 512 and 1,024, and 1.88 s with 128."""

SILENT = -1

FIRST_CALL_TIMEOUT = 60.0
"""Seconds for reading one token after the model is loaded, which takes some hundredths of one."""

WAITING = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "1000"}
"""libgomp's threads wait for one another asleep, after a spin of some ten microseconds. On two cores beside other work,
600 tokens took 10 to 13 s with threads that sleep and 30 to 40 s with threads that spin, for four times the CPU time. A
suffix of 40 tokens meets hundreds of short waits: alone on the machine it took 219 ms without that spin, 192 ms with it
and 194 ms with five times as much; beside other work, the short spin cost 3%, the longer one 15%."""

CPUS = Path("/sys/devices/system/cpu")
CGROUP = Path("/sys/fs/cgroup")


class EmbeddedServer:
    """A llama.cpp server that listens on a free loopback port until :meth:`close`.

    Attributes:
        url: Its address.
        api_key: Its Bearer key. It has one because other users of the machine can reach loopback too.
    """

    def __init__(self, server: Any, api_key: str) -> None:
        self._server = server
        self.url: str = server.listening_address
        self.api_key = api_key

    async def close(self) -> None:
        """Stop the server, and free its port and the model's memory. A second call does nothing."""
        server, self._server = self._server, None
        if server is not None:
            # The thread drops the last reference: destroying the server joins the server's own threads.
            holder = [server]
            del server
            await asyncio.to_thread(holder.clear)


async def start_embedded(model: Path, *, context: int, threads: int | None) -> EmbeddedServer:
    """Load a model and serve it, off the event loop.

    A cancellation waits for the load to end, because a load cannot be interrupted.

    Args:
        model: A GGUF file.
        context: Tokens of a prompt and its output.
        threads: For the computation; llama.cpp's own default when ``None``.

    Raises:
        StartupError: xllamacpp is not installed or does not run here, or the model does not load.
    """
    loading = asyncio.ensure_future(asyncio.to_thread(_start, model, context, threads))
    try:
        return await asyncio.shield(loading)
    except asyncio.CancelledError:
        while not loading.done():
            await asyncio.wait([loading])
        if loading.exception() is None:
            await loading.result().close()
        raise


def _start(model: Path, context: int, threads: int | None) -> EmbeddedServer:
    xllamacpp = _import_xllamacpp()
    api_key = secrets.token_urlsafe(32)
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.verbosity = SILENT
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [api_key]
    params.n_ctx = context
    # One slot: prompts that are computed together move one another's numbers.
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = BATCH
    if threads is not None:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    # Models with sliding windows could not be cut back to the prefix otherwise.
    params.swa_full = True
    params.ui = params.endpoint_slots = params.use_jinja = False
    # Copies of prompts in host memory: the slot keeps its prefix itself.
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    try:
        server = EmbeddedServer(xllamacpp.Server(params), api_key)
    except Exception as error:  # xllamacpp raises RuntimeError today; any other means the same
        raise StartupError(
            f"llama.cpp cannot load {model} ({error}): the file is damaged, its architecture is newer than "
            f"xllamacpp {xllamacpp.__version__}, or memory is short (OPENJEV_MAX_INPUT_TOKENS bounds the context)"
        ) from error
    _wait_for_its_loop(server)
    return server


def _wait_for_its_loop(server: EmbeddedServer) -> None:
    """Return once the server works on calls.

    It listens earlier. A server that is destroyed before its loop runs waits for that loop for ever.
    """
    body = {"prompt": [0], "n_predict": 0, "cache_prompt": False}
    with suppress(httpx.HTTPError):  # the first real call reports a server that does not answer
        httpx.post(
            f"{server.url}/completion",
            json=body,
            headers=headers(server.api_key),
            timeout=FIRST_CALL_TIMEOUT,
            trust_env=False,
        )


def _import_xllamacpp() -> ModuleType:
    try:
        with _environment(WAITING):
            return importlib.import_module("xllamacpp")
    except ModuleNotFoundError as error:
        if error.name != "xllamacpp":
            raise
        raise StartupError(
            "the embedded engine is not installed: pip install 'openjev[embedded]', "
            "or serve from a server that runs already: --connect URL"
        ) from None
    except ImportError as error:
        hint = "; install libgomp1 (Debian, Ubuntu) or libgomp (Fedora, Alpine)" if "libgomp" in str(error) else ""
        raise StartupError(f"the embedded engine does not load on this machine: {error}{hint}") from error


@contextmanager
def _environment(wanted: dict[str, str]) -> Iterator[None]:
    """Set variables while a library reads them. If the user has set one of them, none is set: they belong together."""
    added = {} if any(name in os.environ for name in wanted) else wanted
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def default_threads(cpus: Path = CPUS, cgroup: Path = CGROUP) -> int | None:
    """The physical cores that this process may use, or ``None`` where Linux's files do not say.

    Two threads on one core only wait for each other. llama.cpp counts the machine's cores itself, but does not know
    what a container or an affinity mask leaves of them.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    usable = os.sched_getaffinity(0)
    cores = set()
    for cpu in usable:
        siblings = cpus / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        try:
            cores.add(siblings.read_text())
        except OSError:
            return min(len(usable), cpu_quota(cgroup) or len(usable))
    return min(len(cores), cpu_quota(cgroup) or len(cores))


def cpu_quota(cgroup: Path) -> int | None:
    """The CPUs that a container's quota amounts to, rounded up; ``None`` without a quota."""
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else max(1, -(-int(quota) // int(period)))
