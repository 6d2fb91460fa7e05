"""Evaluations beyond those that run at once: which wait, which are turned away, and what those are told."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from scripted_backend import ScriptedBackend, scripted_engine
from until import until

from openjev_core.engine.admission import WAITING_PER_PLACE
from openjev_core.errors import AtCapacity

pytestmark = pytest.mark.anyio

NOUL = {"q": {"type": "noul", "instructions": "Is it?"}}


@pytest.fixture
def gated():
    return ScriptedBackend(gate=asyncio.Event())


def engine_whose_recent_took(backend, *seconds, **settings):
    engine = scripted_engine(backend, **settings)
    engine._admission._recent.extend(seconds)
    return engine


def asking(engine, state="S."):
    return asyncio.create_task(engine.evaluate(state=state, questions=NOUL))


async def refused(engine):
    with pytest.raises(AtCapacity) as caught:
        await engine.evaluate(state="S.", questions=NOUL)
    return caught.value


async def test_a_burst_is_served_in_the_order_in_which_it_came(gated):
    engine = engine_whose_recent_took(gated, 0.1, max_concurrent_requests=2)
    answered = []
    burst = []
    for number in range(2 + WAITING_PER_PLACE * 2):
        task = asking(engine, f"State {number}.")
        task.add_done_callback(lambda _, number=number: answered.append(number))
        burst.append(task)
        await until(lambda number=number: number + 1 == engine.in_flight + engine.waiting)
    await until(lambda: 2 == len(gated.shares))
    assert (2, WAITING_PER_PLACE * 2) == (engine.in_flight, engine.waiting)
    assert "2 evaluations are running, as many as are admitted at once (max_concurrent_requests 2), and 8 are" in str(
        await refused(engine)
    )
    gated.gate.set()
    await asyncio.gather(*burst)
    assert list(range(10)) == answered
    assert (0, 0) == (engine.in_flight, engine.waiting)


async def test_what_a_body_expands_to_takes_memory_only_once_it_has_a_place(gated):
    """Of what waits, or is turned away, the server holds what was sent."""
    engine = engine_whose_recent_took(gated, 0.1, max_concurrent_requests=1)
    opened = []

    def body():
        opened.append("opened")
        return orjson.dumps({"model": "jev-latest", "state": "S.", "questions": NOUL})

    first = asking(engine)
    await until(lambda: 1 == len(gated.shares))
    waiting = [asyncio.create_task(engine.evaluate_body(body)) for _ in range(WAITING_PER_PLACE)]
    await until(lambda: WAITING_PER_PLACE == engine.waiting)
    with pytest.raises(AtCapacity):
        await engine.evaluate_body(body)
    assert [] == opened
    gated.gate.set()
    await asyncio.gather(first, *waiting)
    assert ["opened"] * WAITING_PER_PLACE == opened


async def test_never_do_more_run_than_the_limit_says():
    backend = ScriptedBackend()
    most = 0

    engine = engine_whose_recent_took(backend, 0.01, max_concurrent_requests=3)
    tasks = [asking(engine, f"State {number}.") for number in range(12)]
    while not all(task.done() for task in tasks):
        most = max(most, engine.in_flight)
        await asyncio.sleep(0)
    assert 12 == len([task.result() for task in tasks])
    assert 3 >= most


@pytest.mark.parametrize(
    ("recent", "settings", "pause"),
    [
        ((), {}, 1.0),
        ((22.0,), {}, 22.0),
        ((20.0, 30.0), {}, 25.0),
        ((300.0,), {}, 60.0),
        ((0.01,), {"queue_timeout": 0.0}, 1.0),
        ((5.5,), {}, 5.5),
        ((5.5,), {"queue_timeout": 5.6}, 5.5),
    ],
)
async def test_what_would_not_be_answered_in_time_is_told_what_recent_ones_took(gated, recent, settings, pause):
    engine = engine_whose_recent_took(gated, *recent, max_concurrent_requests=1, **settings)
    running = asking(engine)
    await until(lambda: gated.shares)
    assert pause == (await refused(engine)).retry_after
    assert 0 == engine.waiting
    running.cancel()


async def test_the_place_behind_many_is_worth_less(gated):
    """With 4 s each and 10 s of patience, one waits at most 4 s for a single place; a second would wait 8."""
    engine = engine_whose_recent_took(gated, 4.0, max_concurrent_requests=1)
    tasks = [asking(engine), asking(engine)]
    await until(lambda: 1 == engine.waiting)
    assert 4.0 == (await refused(engine)).retry_after
    gated.gate.set()
    await asyncio.gather(*tasks)


async def test_those_that_run_long_count_before_they_have_ended(gated):
    engine = engine_whose_recent_took(gated, 0.1, max_concurrent_requests=1)
    running = asking(engine)
    await until(lambda: gated.shares)
    engine._admission._running[0] -= 30
    assert 30 <= (await refused(engine)).retry_after <= 60
    running.cancel()


async def test_waiting_ends_when_the_time_is_over(gated):
    engine = engine_whose_recent_took(gated, 0.001, max_concurrent_requests=1, queue_timeout=0.05)
    running = asking(engine)
    await until(lambda: gated.shares)
    await refused(engine)
    assert (1, 0, 1) == (engine.in_flight, engine.waiting, len(gated.shares))
    gated.gate.set()
    await running
    await engine.evaluate(state="S.", questions=NOUL)


async def test_one_that_hangs_up_while_it_waits_leaves_the_queue(gated):
    engine = engine_whose_recent_took(gated, 0.001, max_concurrent_requests=1)
    running, leaving, staying = asking(engine, "One."), asking(engine, "Two."), asking(engine, "Three.")
    await until(lambda: 2 == engine.waiting)
    leaving.cancel()
    await until(lambda: 1 == engine.waiting)
    gated.gate.set()
    await asyncio.gather(running, staying)
    assert 2 == len(gated.branches)
    assert (0, 0) == (engine.in_flight, engine.waiting)


async def test_only_evaluations_that_were_answered_tell_how_long_one_takes():
    engine = scripted_engine(max_concurrent_requests=1)
    with pytest.raises(Exception, match="a request takes 1 to"):
        await engine.evaluate_body(b'{"model":"jev-latest","state":"x","questions":{}}')
    assert 0 == len(engine._admission._recent)
    await engine.evaluate(state="S.", questions=NOUL)
    assert 1 == len(engine._admission._recent)
