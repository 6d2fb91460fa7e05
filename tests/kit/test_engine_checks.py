"""``check_engine``: engines that keep their contract pass, and each way to break it is found."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager

import coin_engine
import pytest
from attrs import evolve, frozen
from live_server import live_server
from toy_model import hashed

from openjev_core import BackendUnavailable, EngineType, OrderReading, Settings, StartupError, prompt_model
from openjev_core.plugins.registry import load_registry
from openjev_core.testing import ContractBroken, check_engine, engine_checks, scripted_model

pytestmark = pytest.mark.anyio

(COIN,) = coin_engine.openjev_engines()


def leaning(prompt, labels):
    """A script that depends on prompt and label, so that no answer can be mistaken for another."""
    weights = [math.exp(3 * value) for value in map(abs, hashed(prompt, labels))]
    return [weight / sum(weights) for weight in weights]


def engine_with(**methods):
    """An engine whose sessions have some methods of their own, given the true session."""

    @frozen
    class Reader:
        true: object

        def session(self, state):
            if "session" in methods:
                methods["session"](state)
            return Session(self.true.session(state))

    class Session(coin_engine.FaultySession):
        def __init__(self, session):
            super().__init__(session, "none")

        async def read(self, questions):
            return (
                await methods["read"](self._session, questions) if "read" in methods else await super().read(questions)
            )

        def __getattr__(self, name):
            if name in methods:
                return lambda *args: methods[name](self._session, *args)
            return super().__getattr__(name)

    @asynccontextmanager
    async def opened(start):
        model = prompt_model(scripted_model(leaning), start.settings, start.labels)
        yield evolve(model, reader=Reader(model.reader), check=methods.get("check", model.check))

    return EngineType(name="broken", summary="Broken.", api=1, open=opened)


async def broken_rules(engine, settings=None):
    """The rules that an engine breaks, each with what was found."""
    with pytest.raises(ContractBroken) as broken:
        await check_engine(engine, settings)
    assert str(broken.value).startswith(f"engine {engine.name!r} breaks the contract:\n- ")
    return {finding.rule: finding.msg for finding in broken.value.findings}


async def test_an_engine_that_keeps_it_passes():
    await check_engine(engine_with())


@pytest.mark.parametrize("name", ["systemone", "decisions"])
async def test_services_keep_it(name):
    with live_server() as server:
        await check_engine(load_registry().engines[name], Settings(connect=server.url))


@pytest.mark.parametrize("fault", ["one too few", "one order too few", "one question too few", "NaN", "a mass of 2"])
async def test_an_answer_that_is_none_is_found(fault):
    found = await broken_rules(COIN, Settings(own={"coin_toss_fault": fault}))
    assert "it raised BackendError" in found["reading"]


async def test_numbers_in_the_order_shown_are_found():
    async def as_shown(session, questions):
        found = await session.read(questions)
        for question, of_question in zip(questions, found, strict=True):
            for readout, orders in zip(question.readouts, of_question, strict=True):
                for number, (order, one) in enumerate(zip(readout.planned.orders, orders, strict=True)):
                    orders[number] = OrderReading(tuple(one.logprobs[given] for given in order))
        return found

    found = await broken_rules(engine_with(read=as_shown))
    assert ["orders"] == list(found)
    assert found["orders"].startswith("options shown in one order got numbers 0.")


async def test_an_answer_of_another_call_is_found():
    latest = {}

    async def mixed_up(session, questions):
        found = await session.read(questions)
        shape = tuple(len(one) for one in found[0])
        latest[shape] = found
        await asyncio.sleep(0.005)
        return latest[shape]

    assert ["at once"] == list(await broken_rules(engine_with(read=mixed_up)))


async def test_a_read_that_ignores_its_cancellation_is_found(monkeypatch):
    monkeypatch.setattr(engine_checks, "PROMPTLY", 0.05)

    async def stubborn(session, questions):
        found = await session.read(questions)
        for _ in range(2):
            try:
                await asyncio.sleep(0.15)
            except asyncio.CancelledError:
                continue
        return found

    found = await broken_rules(engine_with(read=stubborn))
    assert "a read went on for 0.05 s after it was cancelled" == found["cancelling"]


async def test_what_a_cancelled_read_leaves_behind_is_found():
    spoilt = []

    async def spoiling(session, questions):
        try:
            await asyncio.sleep(0.002)
        except asyncio.CancelledError:
            spoilt.append(True)
            raise
        found = await session.read(questions)
        if spoilt:
            found[0][0] = [OrderReading(one.logprobs[::-1]) for one in found[0][0]]
        return found

    found = await broken_rules(engine_with(read=spoiling))
    assert found["at once"].startswith("reads at once got numbers 0.")


async def test_a_read_that_hangs_is_found(monkeypatch):
    monkeypatch.setattr(engine_checks, "PATIENCE", 0.2)

    async def hanging(session, questions):
        await asyncio.Event().wait()

    found = await broken_rules(engine_with(read=hanging))
    assert "it did not end within 0.2 s" == found["reading"]


async def test_a_question_without_end_that_is_taken_is_found(monkeypatch):
    monkeypatch.setattr(engine_checks, "MOST", 20)
    found = await broken_rules(engine_with())
    assert {"limits": "it prepared 20 readouts of a question without a limit"} == found


async def test_an_engine_that_raises_is_found():
    def refuse(state):
        if len(str(state)) > 1000:
            raise MemoryError("too long")

    found = await broken_rules(engine_with(session=refuse))
    assert ["limits"] == list(found)
    assert found["limits"].startswith("it raised MemoryError: too long (test_engine_checks.py:")


async def test_a_check_that_fails_is_found():
    async def unwell():
        raise BackendUnavailable("not well")

    found = await broken_rules(engine_with(check=unwell))
    assert ["health"] == list(found)


async def test_what_is_shown_is_counted():
    found = await broken_rules(engine_with(shown=lambda session, questions: {"branches": []}))
    assert {"health": "it shows 0 branches of 3"} == found


async def test_a_record_is_checked_first():
    found = await broken_rules(evolve(COIN, api=2))
    assert ["record"] == list(found)


async def test_one_that_does_not_open_says_so():
    with pytest.raises(StartupError, match="open raised ZeroDivisionError: no coin"):
        await check_engine(COIN, Settings(own={"coin_toss_fault": "raises"}))
