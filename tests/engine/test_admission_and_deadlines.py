"""How many evaluations run, how long, and what becomes of one that is cut short."""

from __future__ import annotations

import asyncio
import threading
import time

import orjson
import pytest
from attrs import evolve, field, frozen
from scripted_backend import ScriptedBackend, scripted_engine
from until import until

from openjev_core import Option, QuestionType, Readout
from openjev_core.errors import AtCapacity, BackendError, BackendUnavailable, DeadlineExceeded
from openjev_core.plugins.registry import load_registry

pytestmark = pytest.mark.anyio

NOUL = {"q": {"type": "noul", "instructions": "Is it?"}}


@frozen(kw_only=True)
class Topics:
    count: int
    text: str


@frozen(kw_only=True)
class TopicsAnswer:
    value: float = 0.5


def topics_readouts(question):
    options = (Option(key=1, text="one"), Option(key=2, text="two"))
    for i in range(question.count):
        yield Readout(text=f"{question.text} {i}", options=options)


TOPICS = QuestionType(
    name="topics",
    summary="Several readouts.",
    api=1,
    question=Topics,
    answer=TopicsAnswer,
    readouts=topics_readouts,
    reduce=lambda question, distributions: TopicsAnswer(),
)


@pytest.fixture
def gated():
    return ScriptedBackend(gate=asyncio.Event())


def asking(engine, questions=NOUL):
    return asyncio.create_task(engine.evaluate(state="S.", questions=questions))


async def test_what_is_over_the_limit_is_turned_away_at_once(gated):
    engine = scripted_engine(gated, max_concurrent_requests=2)
    running = [asking(engine), asking(engine)]
    await until(lambda: 2 == engine.in_flight == len(gated.shares))
    with pytest.raises(AtCapacity) as refused:
        await engine.evaluate(state="S.", questions=NOUL)
    assert "2 evaluations are running" in str(refused.value)
    assert "max_concurrent_requests 2" in str(refused.value)
    gated.gate.set()
    await asyncio.gather(*running)
    assert 0 == engine.in_flight
    await engine.evaluate(state="S.", questions=NOUL)


async def test_a_preview_counts_too(gated):
    engine = scripted_engine(gated, max_concurrent_requests=1)
    body = orjson.dumps({"model": "jev-latest", "state": "S.", "questions": NOUL})
    running = asking(engine)
    await until(lambda: gated.shares)
    with pytest.raises(AtCapacity):
        await engine.preview_body(body)
    gated.gate.set()
    await running
    (branch,) = (await engine.preview_body(body))["branches"]
    assert gated.prompts[0] == branch["prompt"]
    assert {"Yes": "the answer is yes", "No": "the answer is no"} == branch["labels"]


async def test_a_backend_that_takes_too_long_is_left_and_told_so(gated):
    engine = scripted_engine(gated, request_timeout=0.05)
    with pytest.raises(DeadlineExceeded, match=r"longer than request_timeout \(0\.05 s\)"):
        await engine.evaluate(state="S.", questions=NOUL)
    assert (1, 0, 0) == (gated.cancelled, gated.open, engine.in_flight)


async def test_a_backends_own_timeout_is_its_own(gated):
    backend = ScriptedBackend(error=TimeoutError("of the backend"))
    with pytest.raises(BackendError, match="reading raised TimeoutError"):
        await scripted_engine(backend).evaluate(state="S.", questions=NOUL)


async def test_a_hang_up_stops_the_work_and_frees_the_place(gated):
    engine = scripted_engine(gated, max_concurrent_requests=1)
    running = asking(engine)
    await until(lambda: gated.shares)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (1, 0, 0) == (gated.cancelled, gated.open, engine.in_flight)


async def test_a_fault_frees_the_place():
    backend = ScriptedBackend(error=BackendUnavailable("gone"))
    engine = scripted_engine(backend, max_concurrent_requests=1)
    for _ in range(3):
        with pytest.raises(BackendUnavailable, match="gone"):
            await engine.evaluate(state="S.", questions=NOUL)
    assert (0, 0) == (backend.open, engine.in_flight)


async def test_the_first_fault_of_several_groups_cancels_the_others(gated):
    """Questions that share much are read by themselves, at the same time as the rest."""
    many = {f"q{i}": {"type": "topics", "count": 4, "text": "x" * 60} for i in range(3)}
    engine = scripted_engine(gated, TOPICS)
    running = asking(engine, many)
    await until(lambda: 3 == len(gated.shares))
    gated.error = BackendUnavailable("gone")
    gated.gate.set()
    with pytest.raises(BackendUnavailable, match="gone"):
        await running
    assert 0 == gated.open


@pytest.fixture
def hanging():
    """A way to make a plugin hang until the test is over."""
    release, started = threading.Event(), []

    def hang(*_):
        started.append(threading.current_thread())
        release.wait(60)
        return []

    hang.started = started
    yield hang
    release.set()


@pytest.mark.parametrize("where", ["readouts", "reduce", "suffix"])
async def test_a_plugin_that_hangs_ends_in_time_and_holds_up_no_one(hanging, where):
    types = load_registry().types
    stuck = evolve(types["choice"], name="stuck", **{where: hanging})
    engine = scripted_engine(None, stuck, *types.values(), request_timeout=5.0, max_concurrent_requests=64)
    question = {"q": {"type": "stuck", "criteria": {"a": None, "b": None}}}
    waiting = [asking(engine, question) for _ in range(20)]
    await until(lambda: 20 == len(hanging.started))
    evaluation = await engine.evaluate(state="S.", questions=NOUL)
    assert 0.5 == pytest.approx(evaluation.answers["q"]["noul"])
    assert {True} == {thread.daemon for thread in hanging.started}
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert 0 == engine.in_flight


@pytest.mark.parametrize("where", ["readouts", "reduce"])
async def test_a_plugin_that_hangs_is_a_deadline(hanging, where):
    stuck = evolve(load_registry().types["noul"], **{where: hanging})
    engine = scripted_engine(None, stuck, request_timeout=0.1)
    with pytest.raises(DeadlineExceeded):
        await engine.evaluate(state="S.", questions=NOUL)
    assert 0 == engine.in_flight


@pytest.fixture
def stuck_class(hanging):
    """A type whose question class hangs: structuring runs the class's own validators."""

    @frozen(kw_only=True)
    class Stuck:
        instructions: str = field(validator=hanging)

    return evolve(load_registry().types["noul"], name="stuck", question=Stuck, examples=())


STUCK = orjson.dumps({"model": "jev-latest", "state": "S.", "questions": {"q": {"type": "stuck", "instructions": "?"}}})


async def test_a_question_class_that_hangs_is_a_deadline_and_holds_up_no_one(hanging, stuck_class):
    """A third party's classes are run in a thread, under the evaluation's deadline and in its place."""
    engine = scripted_engine(None, stuck_class, *load_registry().types.values(), request_timeout=0.3)
    waiting = asyncio.create_task(engine.evaluate_body(STUCK))
    await until(lambda: hanging.started)
    assert 1 == engine.in_flight
    evaluation = await engine.evaluate(state="S.", questions=NOUL)
    assert 0.5 == pytest.approx(evaluation.answers["q"]["noul"])
    with pytest.raises(DeadlineExceeded):
        await waiting
    assert 0 == engine.in_flight


async def test_structuring_counts_among_the_evaluations(hanging, stuck_class):
    engine = scripted_engine(None, stuck_class, max_concurrent_requests=1)
    waiting = asyncio.create_task(engine.evaluate_body(STUCK))
    await until(lambda: hanging.started)
    with pytest.raises(AtCapacity):
        await engine.evaluate_body(STUCK)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_one_deadline_covers_structuring_and_reading(stuck_class):
    """A class that takes two thirds of the time leaves the backend one third, not all of it again."""
    slow = scripted_engine(
        ScriptedBackend(gate=asyncio.Event()),
        evolve(stuck_class, question=sleeping(0.2), examples=()),
        request_timeout=0.3,
    )
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(DeadlineExceeded, match=r"longer than request_timeout \(0\.3 s\)"):
        await slow.evaluate_body(STUCK)
    assert 0.3 == pytest.approx(loop.time() - began, abs=0.15)


def sleeping(seconds):
    """A question class that takes so long over each question."""

    @frozen(kw_only=True)
    class Slow:
        instructions: str = field(validator=lambda *_: time.sleep(seconds))
        criteria: str | None = None

    return Slow
