"""What takes long, or waits for someone, is not done on the event loop."""

from __future__ import annotations

import asyncio

import pytest
from attrs import evolve

from openjev_core import Settings
from openjev_core.engine.engine import engine_for
from openjev_core.plugins.registry import load_registry
from openjev_core.testing import scripted_model

pytestmark = pytest.mark.anyio

QUESTIONS = {"q": {"type": "choice", "instructions": "Which?", "criteria": {"red": None, "blue": None, "grey": None}}}


@pytest.fixture
def loaded(monkeypatch):
    """A model, and whether each text that it tokenized was tokenized on an event loop."""
    model, on_loop = scripted_model(), []
    encode = model.tokenizer.encode

    def watched(text, *, control=False):
        on_loop.append(asyncio._get_running_loop() is not None)
        return encode(text, control=control)

    monkeypatch.setattr(model.tokenizer, "encode", watched)
    return model, on_loop


async def evaluated(engine, on_loop, **options):
    on_loop.clear()
    document = {"model": "jev-latest", "state": "S.", "questions": QUESTIONS, **options}
    await engine.evaluate_request(engine.structure(document, size=100))
    return set(on_loop)


async def test_a_small_request_in_one_order_is_not_worth_a_thread(loaded):
    model, on_loop = loaded
    engine = engine_for(model, Settings(), load_registry())
    assert {True} == await evaluated(engine, on_loop)


@pytest.mark.parametrize("orders", [2, "full", "adaptive"])
async def test_further_orders_are_tokenized_in_a_thread(loaded, orders):
    model, on_loop = loaded
    engine = engine_for(model, Settings(), load_registry())
    assert {False} == await evaluated(engine, on_loop, x_orders=orders)


async def test_a_tokenizer_that_waits_is_asked_in_a_thread_also_for_the_prior(loaded):
    model, on_loop = loaded
    engine = engine_for(evolve(model, tokenizer_waits=True), Settings(prior="contentless"), load_registry())
    assert {False} == await evaluated(engine, on_loop)
