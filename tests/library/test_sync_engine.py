"""The engine without ``await``."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from toy_model import ToyBackend, toy_model

from openjev_core import RequestError, Settings, StartupError, SyncEngine, open_engine
from openjev_core.engine import opening
from openjev_core.errors import AtCapacity
from openjev_core.prompts.model import prompt_model

QUESTIONS = {"team": {"type": "choice", "criteria": {"billing": "Payments", "sales": None}}}
CLOSINGS = []
"""The backends of engines that were closed in the running test."""


@pytest.fixture
def toy(monkeypatch):
    """Every engine that is opened has the toy; when it is closed it is in ``CLOSINGS``."""
    backend = ToyBackend()
    CLOSINGS.clear()

    async def open_toy(settings, registry, progress, stack):
        progress(f"loading in {threading.current_thread().name}")
        stack.callback(CLOSINGS.append, backend)
        return prompt_model(toy_model(backend), settings, registry.labels)

    monkeypatch.setattr(opening, "open_model", open_toy)
    return backend


@pytest.mark.anyio
async def test_it_answers_what_the_async_engine_answers(toy):
    async with open_engine(Settings()) as engine:
        expected = await engine.evaluate(state="A ticket.", questions=QUESTIONS)
    with SyncEngine(Settings()) as engine:
        assert expected.answers == engine.evaluate(state="A ticket.", questions=QUESTIONS).answers


def test_it_closes_what_it_opened_and_leaves_no_thread(toy):
    before = set(threading.enumerate())
    lines = []
    with SyncEngine(progress=lines.append) as engine:
        assert 64 == engine.limits.max_questions
        assert [] == CLOSINGS
    assert [toy] == CLOSINGS
    assert threading.current_thread().name not in lines[0]
    assert [] == [thread for thread in set(threading.enumerate()) - before if not thread.daemon]


def test_errors_come_as_they_are(toy):
    with SyncEngine() as engine:
        with pytest.raises(RequestError, match="unknown question type 'bogus'"):
            engine.evaluate(state="x", questions={"q": {"type": "bogus"}})
        assert engine.evaluate(state="x", questions=QUESTIONS).answers.keys() == {"team"}


def test_a_start_that_fails_leaves_nothing(toy):
    before = set(threading.enumerate())
    with pytest.raises(StartupError, match="no question types"), SyncEngine(Settings(disable_plugins=("openjev",))):
        pass
    assert set() == set(threading.enumerate()) - before  # idle threads of engines before it may end meanwhile


def test_threads_evaluate_at_once(toy):
    both = threading.Barrier(2, timeout=20)
    toy.seconds = 0.5

    with SyncEngine(Settings(max_concurrent_requests=1)) as engine, ThreadPoolExecutor(2) as pool:

        def evaluate(state):
            both.wait()
            try:
                return engine.evaluate(state=state, questions=QUESTIONS).usage.output_tokens
            except AtCapacity:
                return "refused"

        # One is let in, and the other meets it there: neither waits for the other's end before it starts.
        assert {2, "refused"} == set(pool.map(evaluate, ["one", "two"]))


def test_outside_the_block_it_says_what_to_do(toy):
    engine = SyncEngine()
    with pytest.raises(RuntimeError, match="use it inside `with SyncEngine"):
        engine.evaluate(state="x", questions=QUESTIONS)
    with engine:
        pass
    with pytest.raises(RuntimeError, match="use it inside `with SyncEngine"):
        _ = engine.limits


def test_it_can_be_opened_again(toy):
    engine = SyncEngine()
    for _ in range(2):
        with engine:
            assert engine.evaluate(state="x", questions=QUESTIONS).usage.output_tokens == 2
