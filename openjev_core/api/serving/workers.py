"""Several processes that serve on one socket, each with its share of the limits."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess

import attrs

from openjev_core.api.serving.server import BACKLOG
from openjev_core.ending import leave_threads_behind
from openjev_core.errors import SettingsError, StartupError
from openjev_core.settings import Settings

FAREWELL_SECONDS = 15.0
"""How long the workers may take to end after the grace period, before they are killed."""

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder in which the workers' metrics are kept. prometheus-client looks for it when it is
imported, in the workers."""

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
    sock.listen(BACKLOG)
    spawn = multiprocessing.get_context("spawn")
    with metrics_folder() as folder, signals_waking() as wake:
        workers = [
            spawn.Process(target=work_beside_parent, args=(work, share, sock, number, folder))
            for number in range(settings.workers)
        ]
        try:
            for worker in workers:
                worker.start()
            ended = wait([wake, *(worker.sentinel for worker in workers)])
        finally:
            codes = stop_all(workers, settings.grace_period + FAREWELL_SECONDS)
    if wake not in ended:
        raise StartupError(f"a worker ended by itself and so the server stops; exit codes: {codes}")


def stop_all(workers: Sequence[SpawnProcess], seconds: float) -> list[int | None]:
    """Stop workers gracefully, all at once, and kill those that have not ended after ``seconds``. Their exit codes."""
    started = [worker for worker in workers if worker.pid is not None]
    for worker in started:
        worker.terminate()
    deadline = time.monotonic() + seconds
    for worker in started:
        worker.join(max(0.0, deadline - time.monotonic()))
    for worker in started:
        worker.kill()
        worker.join()
    return [worker.exitcode for worker in started]


def work_beside_parent(
    work: Work, settings: Settings, sock: socket.socket, number: int, own_metrics: str | None
) -> None:
    """In a worker process: work; then remove what a parent that was killed has left behind."""
    try:
        work(settings, sock, number)
    finally:
        parent = multiprocessing.parent_process()
        if own_metrics is not None and parent is not None and not parent.is_alive():
            shutil.rmtree(own_metrics, ignore_errors=True)
        leave_threads_behind()


def stop_with_parent(stop: asyncio.Event) -> None:
    """In a worker process: set ``stop`` once the process that started it is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    loop = asyncio.get_running_loop()

    def gone() -> None:
        loop.remove_reader(parent.sentinel)  # it stays readable
        stop.set()

    loop.add_reader(parent.sentinel, gone)


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
def metrics_folder() -> Iterator[str | None]:
    """A folder for the workers' metrics, so that any worker can tell those of all; ``None`` where the user names one.

    This process keeps no metrics.
    """
    if METRICS_FOLDER in os.environ:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="openjev-metrics-") as folder:
        os.environ[METRICS_FOLDER] = folder
        try:
            yield folder
        finally:
            del os.environ[METRICS_FOLDER]
