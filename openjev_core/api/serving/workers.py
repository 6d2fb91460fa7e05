"""Several processes that serve on one socket, each with its share of the limits."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess

import attrs

from openjev_core.errors import SettingsError, StartupError
from openjev_core.settings import Settings

FAREWELL_SECONDS = 15.0
"""How long a worker may take to end after its grace period, before it is killed."""

logger = logging.getLogger("openjev.server")

Work = Callable[[Settings, socket.socket, int], None]
"""Serves in a worker process: settings, a listening socket, the worker's number from 0. Importable by name."""


def shares_of(settings: Settings) -> Settings:
    """What one of several workers runs with: the concurrency limits divided, everything else the same.

    Raises:
        SettingsError: There is too little to divide, or no backend that workers could share.
    """
    count = settings.workers
    if not settings.connect:
        raise SettingsError(
            f"OPENJEV_WORKERS: expected 1 without --connect, found {count}; only an SGLang that runs by itself is "
            "shared by several workers"
        )
    requests, branches = settings.max_concurrent_requests, settings.max_concurrent_branches
    if min(requests, branches) < count:
        raise SettingsError(
            f"OPENJEV_WORKERS: expected at most {min(requests, branches)}, found {count}; max_concurrent_requests "
            f"({requests}) and max_concurrent_branches ({branches}) are divided among the workers"
        )
    return attrs.evolve(settings, max_concurrent_requests=requests // count, max_concurrent_branches=branches // count)


def run_workers(settings: Settings, sock: socket.socket, work: Work) -> None:
    """Serve in ``settings.workers`` processes until SIGTERM or SIGINT; returns after a graceful stop.

    Args:
        settings: The whole server's.
        sock: Bound; the workers accept from it.
        work: What each of them does.

    Raises:
        SettingsError: See :func:`shares_of`.
        StartupError: A worker ended by itself.
    """
    share = shares_of(settings)
    logger.info(
        "%d workers, each with %d evaluations and %d backend calls at once",
        settings.workers, share.max_concurrent_requests, share.max_concurrent_branches,
    )  # fmt: skip
    sock.listen(1024)
    spawn = multiprocessing.get_context("spawn")
    with shared_metrics(), signals_waking() as wake:
        workers = [spawn.Process(target=work, args=(share, sock, number)) for number in range(settings.workers)]
        try:
            for worker in workers:
                worker.start()
            ended = wait([wake, *(worker.sentinel for worker in workers)])
        finally:
            codes = stop_all(workers, settings.grace_period + FAREWELL_SECONDS)
    if wake not in ended:
        raise StartupError(f"a worker ended by itself and so the server stops; exit codes: {codes}")


def stop_all(workers: Sequence[SpawnProcess], seconds: float) -> list[int | None]:
    """Stop workers gracefully, all at once; kill what does not stop in time. Their exit codes."""
    started = [worker for worker in workers if worker.pid is not None]
    for worker in started:
        worker.terminate()
    for worker in started:
        worker.join(seconds)
        if worker.exitcode is None:
            worker.kill()
            worker.join()
    return [worker.exitcode for worker in started]


@contextmanager
def signals_waking() -> Iterator[socket.socket]:
    """A socket that becomes readable at SIGTERM or SIGINT, for as long as the context lasts."""
    reader, writer = socket.socketpair()
    with reader, writer:
        previous = {
            number: signal.signal(number, lambda *_: writer.send(b"\0")) for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield reader
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


@contextmanager
def shared_metrics() -> Iterator[None]:
    """A folder in which the workers' metrics are kept, so that whichever is asked tells of all.

    prometheus-client looks for the variable when it is imported, in the workers; this process keeps no metrics.
    """
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="openjev-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        try:
            yield
        finally:
            del os.environ["PROMETHEUS_MULTIPROC_DIR"]
