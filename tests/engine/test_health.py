"""The backend is asked at most once a second, whoever asks."""

from __future__ import annotations

import asyncio

import pytest
from scripted_backend import ScriptedBackend, scripted_engine

from openjev_core.backends import fanout
from openjev_core.backends.llamacpp import backend as llamacpp_backend
from openjev_core.engine import health
from openjev_core.errors import BackendError, BackendUnavailable

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(health.time, "monotonic", lambda: now[0])
    return now


async def test_many_who_ask_at_once_cause_one_probe(clock):
    backend = ScriptedBackend()
    engine = scripted_engine(backend)
    await asyncio.gather(*(engine.check() for _ in range(50)))
    assert 1 == backend.checked
    clock[0] += 0.99
    await engine.check()
    assert 1 == backend.checked
    clock[0] += 0.02
    await engine.check()
    assert 2 == backend.checked


async def test_an_outcome_is_passed_on_until_it_is_a_second_old(clock):
    backend = ScriptedBackend(error=BackendError("nonsense"))
    engine = scripted_engine(backend)
    for _ in range(3):
        with pytest.raises(BackendError, match="nonsense"):
            await engine.check()
    assert 1 == backend.checked
    backend.error = None
    with pytest.raises(BackendError):
        await engine.check()
    clock[0] += 1.0
    await engine.check()
    assert 2 == backend.checked


async def test_an_error_that_is_passed_on_does_not_grow(clock):
    backend = ScriptedBackend(error=BackendError("nonsense"))
    engine = scripted_engine(backend)

    async def depth():
        with pytest.raises(BackendError) as raised:
            await engine.check()
        return len(raised.traceback)

    first = await depth()
    for _ in range(20):
        last = await depth()
    assert last <= first


async def test_a_backend_that_does_not_answer_is_unavailable(monkeypatch):
    monkeypatch.setattr(health, "PATIENCE", 0.01)

    class Silent(ScriptedBackend):
        async def check(self):
            await asyncio.sleep(60)

    with pytest.raises(BackendUnavailable, match=r"did not answer a probe within 0\.01 seconds"):
        await scripted_engine(Silent()).check()


async def test_one_who_stops_asking_does_not_keep_others_from_it(monkeypatch):
    release = asyncio.Event()

    class Slow(ScriptedBackend):
        async def check(self):
            self.checked += 1
            await release.wait()

    engine = scripted_engine(Slow())
    impatient = asyncio.create_task(engine.check())
    await asyncio.sleep(0)
    patient = asyncio.create_task(engine.check())
    await asyncio.sleep(0)
    impatient.cancel()
    release.set()
    await patient


async def test_a_backend_has_judged_itself_before_patience_ends():
    """A busy one passes its own check by what it answered meanwhile; cut off before, it never would."""
    assert fanout.CHECK_TIMEOUT < health.PATIENCE
    assert llamacpp_backend.CHECK_WAIT + llamacpp_backend.CHECK_TIMEOUT < health.PATIENCE
