"""Several worker processes on one socket."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from pathlib import Path

import httpx
import psutil
import pytest
from openjev_process import serving
from short_work import hangs, one_fails
from tiny_tokenizer import write_tiny_tokenizer
from until import eventually

from openjev_core.api.serving.server import bound_socket
from openjev_core.api.serving.workers import METRICS_FOLDER, run_workers, shares_of, stop_all, stop_with_parent
from openjev_core.errors import SettingsError, StartupError
from openjev_core.settings import Settings

REQUEST = {
    "model": "jev-latest",
    "state": "I was charged twice.",
    "questions": {"team": {"type": "choice", "criteria": {"billing": "Payments", "sales": None}}},
}


def test_the_limits_are_divided():
    share = shares_of(Settings(connect="http://x", workers=3, max_concurrent_requests=16, max_concurrent_branches=64))
    assert (5, 21) == (share.max_concurrent_requests, share.max_concurrent_branches)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 2}, "OPENJEV_WORKERS: expected 1 without --connect, found 2"),
        ({"workers": 20, "connect": "http://x"}, "OPENJEV_WORKERS: expected at most 16, found 20"),
        ({"workers": 4, "connect": "http://x", "max_concurrent_branches": 3}, "expected at most 3, found 4"),
    ],
)
def test_what_cannot_be_divided_is_refused(settings, message):
    with pytest.raises(SettingsError, match=message):
        shares_of(Settings(**settings))


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory):
    return write_tiny_tokenizer(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
async def two_workers(start_double, tokenizer):
    sglang = await start_double(model_path=str(tokenizer))
    flags = ("--connect", sglang.url, "--model", tokenizer, "--max-input-tokens", "2042", "--workers", "2")
    with serving(*flags) as child:
        url = await asyncio.to_thread(child.wait_until_it_listens)
        workers = psutil.Process(child.process.pid).children(recursive=True)
        yield child, url, [worker for worker in workers if "multiprocessing.spawn" in " ".join(worker.cmdline())]


@pytest.mark.anyio
async def test_they_serve_count_and_stop_together(two_workers):
    child, url, workers = two_workers
    assert 2 == len(workers)
    for _ in range(10):
        async with httpx.AsyncClient(timeout=20) as client:
            assert 200 == (await client.post(f"{url}/v1/systemone", json=REQUEST)).status_code
    counted = 'openjev_requests_total{route="/v1/systemone",status="200"} 10.0'
    assert await asyncio.to_thread(eventually, lambda: counted in httpx.get(f"{url}/metrics").text)
    assert "2 workers, each with 8 evaluations and 32 backend calls at once" in child.log
    assert 0 == await asyncio.to_thread(child.stop)
    assert [] == [worker for worker in workers if worker.is_running()]
    assert "Traceback" not in child.log


def test_when_one_ends_by_itself_all_end():
    settings = Settings(connect="http://unused", workers=2, port=0, grace_period=1.0)
    with bound_socket(settings) as sock, pytest.raises(StartupError, match="a worker ended by itself") as caught:
        run_workers(settings, sock, one_fails)
    assert "[-15, 3]" in str(caught.value)
    assert [] == multiprocessing.active_children()


def test_those_that_hang_share_one_time_limit():
    settings = Settings(grace_period=2.0)
    spawn = multiprocessing.get_context("spawn")
    with bound_socket(Settings(port=0)) as sock:
        workers = [spawn.Process(target=hangs, args=(settings, sock, number)) for number in range(2)]
        for worker in workers:
            worker.start()
        assert eventually(lambda: all(ignores_sigterm(worker) for worker in workers), 30)
        assert [-9, -9] == stop_all(workers, settings.grace_period)


def ignores_sigterm(worker):
    mask = next(line for line in Path(f"/proc/{worker.pid}/status").read_text().splitlines() if "SigIgn" in line)
    return bool(int(mask.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.anyio
async def test_when_the_parent_is_killed_the_workers_end_and_leave_nothing(two_workers):
    await asyncio.to_thread(kill_the_parent, *two_workers)


def kill_the_parent(child, _url, workers):
    folder = Path(workers[0].environ()[METRICS_FOLDER])
    assert folder.exists()
    os.kill(child.process.pid, signal.SIGKILL)
    child.process.wait()
    _, alive = psutil.wait_procs(workers, 20)
    assert [] == alive
    assert not folder.exists()


@pytest.mark.anyio
async def test_a_worker_hears_once_that_its_parent_is_gone(monkeypatch):
    class Parent:
        def __init__(self):
            self.sentinel, writer = os.pipe()
            os.close(writer)

    class Stop:
        heard = 0

        def set(self):
            self.heard += 1

    stop = Stop()
    monkeypatch.setattr(multiprocessing, "parent_process", Parent)
    stop_with_parent(stop)
    for _ in range(20):
        await asyncio.sleep(0)
    assert 1 == stop.heard


@pytest.mark.anyio
async def test_any_worker_tells_the_whole_servers_limits(two_workers):
    _, url, _ = two_workers
    async with httpx.AsyncClient(base_url=url, timeout=30) as client:
        limits = (await client.get("/v1/limits")).json()
    assert (16, 64) == (limits["max_concurrent_requests"], limits["max_concurrent_branches"])
