"""Work that nobody waits for stops, and nothing of it is left behind."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager

import httpx
import pytest
from sglang_double_faults import Fault
from sglang_double_model import logprob
from until import until

from openjev_core.backends import fanout as backend_module
from openjev_core.backends.protocol import Branch
from openjev_core.backends.sglang.opening import open_sglang
from openjev_core.errors import BackendError, BackendUnavailable
from openjev_core.settings import Settings

pytestmark = pytest.mark.anyio

LABELS = (5, 6)


@asynccontextmanager
async def connected(double, **settings):
    async with open_sglang(double.url, Settings(**settings), vocab_size=double.vocab_size) as backend:
        double.calls.clear()
        yield backend


async def evaluate(backend, first=0, count=4):
    prefix = (first, *range(100, 160))
    wanted = [Branch((1000 + i,), LABELS) for i in range(count)]
    async with backend.prefix(prefix, key=str(first)) as warm:
        readings, _ = await warm.read(wanted)
    assert [r.logprobs for r in readings] == [
        tuple(logprob((*prefix, *branch.suffix), label) for label in LABELS) for branch in wanted
    ]


async def cancelled(double, backend, jobs=1):
    """An evaluation that is cancelled once ``jobs`` prompts are at work, until nothing of it is left at the server."""
    task = asyncio.create_task(evaluate(backend))
    await until(lambda: len(double.jobs) == jobs)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: double.idle)


def other_tasks():
    return asyncio.all_tasks() - {asyncio.current_task()}


async def test_a_cancelled_evaluation_stops_at_the_server(start_double, frontend, fanout):
    double = await start_double(frontend=frontend, disconnect_notice=60.0)
    async with connected(double, fanout=fanout) as backend:
        double.latency = 30.0
        double.faults.append(Fault("slow", "warm", seconds=-29.99))
        await cancelled(double, backend, 4)
        assert double.aborted == 4
        assert backend.slots.free == backend.slots.size
        # On the Python front end by rid, since a closed connection is noticed after seconds; the Rust one has no route.
        assert len(double.aborts) == (4 if frontend == "python" else 0)


async def test_a_cancelled_warm_up_stops_too(start_double, frontend):
    double = await start_double(frontend=frontend)
    async with connected(double) as backend:
        double.latency = 30.0
        await cancelled(double, backend)
        assert len(double.calls) == 1


async def test_a_failed_branch_cancels_its_siblings(start_double, frontend):
    double = await start_double(frontend=frontend)
    async with connected(double, fanout="calls") as backend:
        double.faults.append(Fault("slow", "branch", times=3, seconds=30.0))
        double.faults.append(Fault("missing", "branch"))
        with pytest.raises(BackendError, match="no logprob"):
            await evaluate(backend)
        await until(lambda: double.idle)
        assert double.aborted == 3
        assert backend.slots.free == backend.slots.size


async def test_an_abort_never_delays_and_gives_up_on_a_dead_server(start_double):
    double = await start_double(frontend="python")
    async with connected(double) as backend:
        double.latency = 30.0
        task = asyncio.create_task(evaluate(backend))
        await until(lambda: len(double.jobs) == 1)
        double.stop()
        with pytest.raises(BackendUnavailable):
            await task
        await until(lambda: backend.client.aborts.task is None or backend.client.aborts.task.done())
        assert not backend.client.aborts.rids


async def test_aborts_are_not_tried_again_where_there_is_no_route(start_double):
    double = await start_double(frontend="rust")
    async with connected(double) as backend:
        backend.client.aborts.add([backend.client.new_rid()])
        await until(lambda: not backend.client.aborts.supported)
        backend.client.aborts.add([backend.client.new_rid()])
        assert not backend.client.aborts.rids


async def test_an_admin_key_that_is_not_ours_leaves_it_to_the_connection(start_double):
    double = await start_double(frontend="python", api_key="key", admin_api_key="other", disconnect_notice=0.05)
    async with connected(double, backend_api_key="key") as backend:
        double.latency = 30.0
        await cancelled(double, backend)
        assert not backend.client.aborts.supported


async def test_request_ids_have_one_length_and_are_no_prefix_of_another(start_double, fanout):
    double = await start_double()
    async with connected(double, fanout=fanout) as backend:
        for first in range(5):
            await evaluate(backend, first, 20)
    rids = [job.rid for call in double.calls for job in call.jobs]
    assert len(set(rids)) == len(rids) == 105
    assert {len(rid.partition("_")[0]) for rid in rids} == {32}


async def test_the_double_aborts_by_prefix_as_the_server_does(start_double):
    double = await start_double(frontend="python", latency=30.0, strict=False)
    async with httpx.AsyncClient(base_url=double.url, timeout=10) as client:
        body = {"input_ids": [1, 2], "return_logprob": True, "token_ids_logprob": [5]}
        calls = [asyncio.create_task(client.post("/generate", json={**body, "rid": rid})) for rid in ("job1", "job12")]
        await until(lambda: len(double.jobs) == 2)
        await client.post("/abort_request", json={"rid": "job1"})
        answers = [(await call).json()["meta_info"]["finish_reason"]["type"] for call in calls]
    assert answers == ["abort", "abort"]


async def test_a_storm_of_evaluations_and_cancellations_leaves_nothing(start_double, frontend, fanout):
    double = await start_double(frontend=frontend, latency=0.004, max_running=16, disconnect_notice=0.02)
    rng = random.Random(7)
    async with connected(double, fanout=fanout, max_concurrent_branches=24) as backend:
        baseline = other_tasks()

        async def client(number):
            task = asyncio.create_task(evaluate(backend, number, rng.choice([1, 3, 8, 40])))
            if number % 3 == 0:
                await asyncio.sleep(rng.random() * 0.15)
                task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return False
            return True

        outcomes = await asyncio.gather(*(client(number) for number in range(120)))
        assert sum(outcomes) >= 80
        await until(lambda: double.idle)
        await until(lambda: backend.client.aborts.task is None or backend.client.aborts.task.done())
        assert backend.slots.free == 24
        assert backend.slots.waiting == []
        assert other_tasks() - baseline - {backend.client.aborts.task} == set()
        await backend.check()


async def test_at_most_so_many_prompts_at_once(start_double, fanout):
    double = await start_double(latency=0.002)
    async with connected(double, fanout=fanout, max_concurrent_branches=10) as backend:
        await asyncio.gather(*(evaluate(backend, first, 30) for first in range(4)))
    assert double.most_at_once == 10


async def test_one_question_passes_a_crowd_of_many(start_double, fanout):
    double = await start_double(latency=0.03)
    order = []

    async def client(backend, number, count):
        await evaluate(backend, number, count)
        order.append(number)

    async with connected(double, fanout=fanout, max_concurrent_branches=8) as backend:
        crowd = [asyncio.create_task(client(backend, number, 64)) for number in range(3)]
        await until(lambda: len(double.jobs) == 8)
        await client(backend, 99, 1)
        assert order == [99]
        await asyncio.gather(*crowd)


async def test_a_check_of_a_busy_server_passes_when_other_calls_are_answered(start_double, monkeypatch):
    monkeypatch.setattr(backend_module, "CHECK_TIMEOUT", 0.2)
    double = await start_double()
    async with connected(double) as backend:
        double.faults.append(Fault("hang", times=1))
        check = asyncio.create_task(backend.check())
        await until(lambda: double.calls)
        await evaluate(backend)
        await check
        double.faults.append(Fault("hang", times=1))
        with pytest.raises(BackendUnavailable, match="has not answered"):
            await backend.check()


async def test_a_check_that_gets_no_connection_passes_when_other_calls_are_answered(start_double, monkeypatch):
    """A server that is too busy to accept another connection answers on those that it has."""
    monkeypatch.setattr(backend_module, "CHECK_TIMEOUT", 0.2)

    async def sock_connect(_socket, _address):
        await asyncio.sleep(60)

    double = await start_double(latency=0.05)
    async with connected(double) as backend:
        evaluation = asyncio.create_task(evaluate(backend))
        await until(lambda: double.calls)
        monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", sock_connect)
        check = asyncio.create_task(backend.check())
        await evaluation
        await check
        await until(backend.client.aborts.task.done)
        double.latency = 0.5
        evaluation = asyncio.create_task(evaluate(backend, first=1, count=1))
        await until(lambda: double.jobs)
        with pytest.raises(BackendUnavailable, match="has not answered"):
            await backend.check()
        await evaluation
