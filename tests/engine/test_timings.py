"""Waiting for others is told apart from the work itself."""

from __future__ import annotations

import asyncio

import pytest
from hand_clock import HandClock
from llamacpp_double import LlamaCppDouble
from scripted_backend import ScriptedBackend, scripted_engine
from until import until

from openjev_core.backends.llamacpp import backend as llamacpp_backend
from openjev_core.backends.llamacpp.client import LlamaCppClient
from openjev_core.backends.llamacpp.slot import Slot, SlotPool
from openjev_core.backends.slots import Slots

pytestmark = pytest.mark.anyio

NOUL = {"q": {"type": "noul", "instructions": "Is it?"}}


class SlowBackend(ScriptedBackend):
    """Its prefixes take 2.5 seconds by a hand clock, what they say they waited included."""

    clock = None

    def prefix(self, *args, **names):
        self.clock.now += 2.5
        return super().prefix(*args, **names)


@pytest.fixture
def clock_of(monkeypatch):
    """Puts one clock into several modules."""

    def put(*modules):
        clock = HandClock()
        for module in modules:
            monkeypatch.setattr(f"openjev_core.{module}.time", clock)
        return clock

    return put


async def test_the_wait_for_a_place_is_the_queue(clock_of):
    gated = ScriptedBackend(gate=asyncio.Event())
    engine = scripted_engine(gated, max_concurrent_requests=1)
    engine._admission._recent.append(0.5)
    clock = clock_of("engine.admission", "prompts.session")
    first, second = (asyncio.create_task(engine.evaluate(state=state, questions=NOUL)) for state in ("S.", "T."))
    await until(lambda: (1, 1) == (engine.waiting, len(gated.shares)))
    clock.now += 3.0
    gated.gate.set()
    phases = [dict(evaluation.timings.phases) for evaluation in await asyncio.gather(first, second)]
    assert [("queue", "prepare", "prefill", "branches")] * 2 == [tuple(one) for one in phases]
    assert [(0.0, 0.0, 3.0), (3.0, 0.0, 0.0)] == [(one["queue"], one["prefill"], one["branches"]) for one in phases]


async def test_the_wait_for_a_place_at_the_model_is_the_queue_and_no_prefill(clock_of):
    backend = SlowBackend(waited=2.0)
    engine = scripted_engine(backend)
    backend.clock = clock_of("engine.admission", "prompts.session")
    timings = (await engine.evaluate(state="S.", questions=NOUL)).timings
    assert (2.0, 0.5, 0.0) == (timings.queue, timings.prefill, timings.branches)


async def test_llama_cpp_tells_how_long_a_prefix_waited_for_its_slot(clock_of):
    client = LlamaCppClient(LlamaCppDouble())
    backend = llamacpp_backend.LlamaCppBackend(
        client=client, vocab_size=1000, max_prompt_tokens=1000, pool=SlotPool([Slot(client, 0)]), release=client.aclose
    )
    clock = clock_of("backends.llamacpp.backend")

    async def waited(ids):
        async with backend.prefix(ids, key="key") as warm:
            return warm.waited

    async with backend.prefix((1, 2, 3), key="key") as held:
        other = asyncio.create_task(waited((4, 5, 6)))
        await asyncio.sleep(0)
        clock.now += 7.0
    assert (0.0, 7.0) == (held.waited, await other)


async def test_a_party_tells_how_long_it_waited_for_its_first_slot(clock_of):
    clock = clock_of("backends.slots")
    slots = Slots(1)
    first, second = slots.party(), slots.party()
    await first.acquire(1)
    wait = asyncio.create_task(second.acquire(1))
    await asyncio.sleep(0)
    clock.now += 4.0
    first.release(1)
    await wait
    again = asyncio.create_task(second.acquire(1))
    await asyncio.sleep(0)
    clock.now += 9.0
    second.release(1)
    await again
    assert (0.0, 4.0) == (first.waited, second.waited)
