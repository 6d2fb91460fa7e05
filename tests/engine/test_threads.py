"""Work beside the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import weakref

import pytest
from until import until

from openjev_core import RequestError
from openjev_core.engine.threads import Threads

pytestmark = pytest.mark.anyio


async def test_results_and_errors_come_back():
    threads = Threads(1)
    assert 42 == await threads.run(lambda: 42)
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 / 0)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await threads.run(lambda: next(iter(())))
    assert 42 == await threads.run(lambda: 42)


async def test_the_work_sees_the_callers_context():
    variable = contextvars.ContextVar("variable")
    variable.set("mine")
    assert "mine" == await Threads(1).run(variable.get)


async def test_no_more_runs_at_once_than_there_are_places():
    threads = Threads(2)
    running, most, lock, go = [], [0], threading.Lock(), threading.Event()

    def work():
        with lock:
            running.append(1)
            most[0] = max(most[0], len(running))
        go.wait(10)
        with lock:
            running.pop()

    tasks = [asyncio.create_task(threads.run(work)) for _ in range(6)]
    await until(lambda: 2 == len(running))
    await asyncio.sleep(0.01)
    go.set()
    await asyncio.gather(*tasks)
    assert 2 == most[0]


async def test_cancelled_work_keeps_its_place_while_it_may_still_end(monkeypatch):
    threads, go, started = Threads(1), threading.Event(), threading.Event()
    task = asyncio.create_task(threads.run(lambda: (started.set(), go.wait(10))))
    await until(started.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    second = asyncio.create_task(threads.run(lambda: 42))
    await asyncio.sleep(0.01)
    assert not second.done()
    go.set()
    assert 42 == await second


async def test_work_that_hangs_loses_its_place(monkeypatch):
    monkeypatch.setattr("openjev_core.engine.threads.PATIENCE", 0.01)
    threads, go, started = Threads(1), threading.Event(), threading.Event()
    task = asyncio.create_task(threads.run(lambda: (started.set(), go.wait(60))))
    await until(started.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    try:
        async with asyncio.timeout(20):
            assert 42 == await threads.run(lambda: 42)
    finally:
        go.set()
    await asyncio.sleep(0.01)
    # Its end, at last, gives no second place back.
    assert 1 == threads._places._value


async def test_threads_end_with_what_they_work_for():
    before = set(threading.enumerate())
    threads, go, started = Threads(2), threading.Event(), threading.Event()
    busy = asyncio.create_task(threads.run(lambda: (started.set(), go.wait(10))))
    await until(started.is_set)
    await threads.run(lambda: 1)
    assert 2 == len(set(threading.enumerate()) - before)
    busy.cancel()
    with pytest.raises(asyncio.CancelledError):
        await busy
    del threads, busy
    gc.collect()
    await until(lambda: 1 == len(set(threading.enumerate()) - before))
    go.set()
    await until(lambda: not set(threading.enumerate()) - before)


async def test_a_caller_that_leaves_while_waiting_takes_no_place():
    threads, go = Threads(1), threading.Event()
    first = asyncio.create_task(threads.run(lambda: go.wait(10)))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(threads.run(lambda: 1))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go.set()
    await first
    assert 42 == await threads.run(lambda: 42)


async def test_a_system_without_threads_is_an_error_that_takes_no_place(monkeypatch):
    threads = Threads(1)

    def refuse(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            await threads.run(lambda: 1)
    assert 42 == await threads.run(lambda: 42)


class Held:
    """Something that can be watched."""


async def test_what_work_that_failed_was_about_is_let_go_at_once():
    """Not by Python's collector: until it comes by, hostile requests would fill the memory."""
    threads, watched = Threads(1), []

    async def refused():
        held = Held()
        watched.append(weakref.ref(held))

        def work():
            raise RequestError.at((), f"wrong: {held}")

        with pytest.raises(RequestError):
            await threads.run(work)

    gc.disable()
    try:
        for _ in range(3):
            await refused()
        await until(lambda: [None] * 3 == [ref() for ref in watched])
    finally:
        gc.enable()
