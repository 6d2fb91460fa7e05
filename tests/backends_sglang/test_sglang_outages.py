"""An SGLang that starts gets no call until it says that it is ready: one that met its own first would kill it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from sglang_double_model import logprob
from until import until

from openjev_core.backends.protocol import Branch
from openjev_core.backends.sglang import client as client_module
from openjev_core.backends.sglang.opening import open_sglang
from openjev_core.errors import BackendUnavailable, StartupError
from openjev_core.settings import Settings

pytestmark = pytest.mark.anyio

PREFIX = tuple(range(100, 160))
BRANCHES = [Branch((1000 + i,), (5, 6)) for i in range(3)]


@pytest.fixture(autouse=True)
def hold_back(monkeypatch):
    monkeypatch.setattr(client_module, "HOLD_BACK", 0.0)


@asynccontextmanager
async def unreachable(start_double):
    """A backend whose server went away, with what its calls found out; the server may be started again."""
    double = await start_double(frontend="python")
    async with open_sglang(double.url, Settings(), vocab_size=double.vocab_size) as backend:
        double.calls.clear()
        double.stop()
        with pytest.raises(BackendUnavailable, match="cannot be reached"):
            await read(backend)
        double.health_checks = 0
        yield backend, double


async def read(backend):
    async with backend.prefix(PREFIX, key="state") as warm:
        readings, _ = await warm.read(BRANCHES)
    assert [reading.logprobs for reading in readings] == [
        tuple(logprob((*PREFIX, *branch.suffix), label) for label in branch.labels) for branch in BRANCHES
    ]


async def test_clients_that_retry_do_not_meet_the_servers_own_first_call(start_double):
    async def client(backend, number):
        for _ in range(1000):
            try:
                return await (backend.check() if number == 0 else read(backend))
            except BackendUnavailable:
                await asyncio.sleep(0.01)
        raise AssertionError("never answered")

    async with unreachable(start_double) as (backend, double):
        clients = [asyncio.create_task(client(backend, number)) for number in range(4)]
        await asyncio.sleep(0.05)
        double.warm_up = 0.3
        await double.start()
        await asyncio.gather(*clients)


async def test_a_server_that_is_not_ready_is_asked_once_for_all_who_wait(start_double):
    async with unreachable(start_double) as (backend, double):
        double.warm_up = 60.0
        await double.start()
        outcomes = await asyncio.gather(*(read(backend) for _ in range(20)), return_exceptions=True)
        assert {"SGLang was unreachable, and does not say yet that it is ready"} == {str(one) for one in outcomes}
        assert {BackendUnavailable} == {type(one) for one in outcomes}
        # Once for the first, and once for all who came while that was under way.
        assert (2, []) == (double.health_checks, double.calls)


async def test_a_server_that_says_it_is_ready_gets_no_call_for_a_moment(start_double, monkeypatch):
    monkeypatch.setattr(client_module, "HOLD_BACK", 60.0)
    async with unreachable(start_double) as (backend, double):
        await double.start()
        first, second = (asyncio.create_task(read(backend)) for _ in range(2))
        await until(lambda: double.health_checks)
        await asyncio.sleep(0.05)
        assert [] == double.calls
        monkeypatch.setattr(client_module, "HOLD_BACK", 0.0)
        first.cancel()
        await second


async def test_an_outage_is_over_once(start_double):
    async with unreachable(start_double) as (backend, double):
        await double.start()
        await read(backend)
        await asyncio.gather(*(read(backend) for _ in range(5)))
        assert 1 == double.health_checks


async def test_no_start_on_a_server_that_is_not_ready(start_double):
    double = await start_double(frontend="python", warm_up=60.0)
    with pytest.raises(StartupError, match=r"^ready: expected an SGLang at .* that is ready, found one"):
        async with open_sglang(double.url, Settings(), vocab_size=double.vocab_size):
            pass
    assert [] == double.calls


async def test_a_call_that_is_refused_is_no_outage(start_double):
    double = await start_double(frontend="python", max_running=1, max_queued=0, latency=0.05)
    async with open_sglang(double.url, Settings(fanout="calls"), vocab_size=double.vocab_size) as backend:
        with pytest.raises(BackendUnavailable, match="queue is full"):
            await read(backend)
        await until(lambda: double.idle)
        await backend.check()
        assert 1 == double.health_checks, "that of the opening"
