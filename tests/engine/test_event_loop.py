"""What takes long, or waits for someone, is not done on the event loop."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import orjson
import pytest
from attrs import evolve
from until import until

from openjev_core import RequestError, Settings
from openjev_core.engine.preparation import HEAVY_AT_ONCE
from openjev_core.engine.request import Requests
from openjev_core.plugins.registry import load_registry
from openjev_core.testing import scripted_model
from openjev_core.testing.scripted import engine_on

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
    await engine.evaluate_request(engine.structure(document))
    return set(on_loop)


async def test_a_small_request_in_one_order_is_not_worth_a_thread(loaded):
    model, on_loop = loaded
    engine = engine_on(model, Settings(), load_registry())
    assert {True} == await evaluated(engine, on_loop)


@pytest.mark.parametrize("orders", [2, "full"])
async def test_further_orders_are_tokenized_in_a_thread(loaded, orders):
    model, on_loop = loaded
    engine = engine_on(model, Settings(), load_registry())
    assert {False} == await evaluated(engine, on_loop, x_orders=orders)


async def test_a_tokenizer_that_waits_is_asked_in_a_thread_also_for_the_prior(loaded):
    model, on_loop = loaded
    engine = engine_on(evolve(model, tokenizer_waits=True), Settings(prior="contentless"), load_registry())
    assert {False} == await evaluated(engine, on_loop)


@pytest.mark.parametrize(
    "state",
    [
        [{"role": "user"}] * 40,
        [{"role": "tool", "content": "a"}] * 40,
        [{"role": "user", "content": "<"}] * 40,
        [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}] * 40}],
        [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "x" * 70}}]}] * 9,
        [{"role": "user", "content": [{"type": "text", "text": "a"}] * 40}],
        {f"{number}": number for number in range(40)},
        [[]] * 64,
        "x" * 16_385,
        ["x" * 8193] * 2,
    ],
)
async def test_a_state_of_many_parts_is_tokenized_in_a_thread(loaded, state):
    """What a message costs does not show in its bytes."""
    model, on_loop = loaded
    engine = engine_on(model, Settings(), load_registry())
    on_loop.clear()
    body = orjson.dumps({"model": "jev-latest", "state": state, "questions": QUESTIONS})
    with suppress(RequestError):
        await engine.evaluate_body(body)
    assert True not in on_loop


@pytest.mark.parametrize(
    ("questions", "short"),
    [
        (QUESTIONS, True),
        ({f"{n}": {"type": "noul", "instructions": "x" * 200} for n in range(64)}, True),
        ({"q": {"type": "score", "criteria": [1] * 1000}}, False),
        ({"q": {"type": "score", "criteria": [[]] * 500}}, False),
        ({"q": {"type": "score", "criteria": [{}] * 500}}, False),
        ({"q": {"type": "noul", "instructions": "x" * 65_536}}, False),
    ],
)
async def test_questions_of_many_parts_are_structured_in_a_thread(monkeypatch, loaded, questions, short):
    engine, on_loop = engine_on(loaded[0], Settings(), load_registry()), []
    structure = Requests.structure

    def watched(requests, document):
        on_loop.append(asyncio._get_running_loop() is not None)
        return structure(requests, document)

    monkeypatch.setattr(Requests, "structure", watched)
    with suppress(RequestError):
        await engine.evaluate_body(orjson.dumps({"model": "jev-latest", "state": "S.", "questions": questions}))
    assert [short] == on_loop


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "jev-latest", "state": "%b", "questions": {"q": {"type": "noul"}}}' % (b"x" * 524_288),
        b'{"model": "jev-latest", "state": "%b", "questions": {"q": {"type": "noul"}}}' % (b" " * 65_536),
        b'{"model": "jev-latest", "state": [%b0], "questions": {"q": {"type": "noul"}}}' % (b"{}," * 500),
        b'{"model": "jev-latest", "state": [%b0], "questions": {"q": {"type": "noul"}}}' % (b"{}," * 11_000),
    ],
)
async def test_heavy_bodies_are_worked_on_two_at_a_time(monkeypatch, loaded, body):
    """Each takes memory and Python's lock; short ones go on beside them."""
    engine, release, begun = engine_on(loaded[0], Settings(), load_registry()), threading.Event(), []
    structure = Requests.structure

    def slow(requests, document):
        if document["state"] != "S.":
            begun.append(document)
            release.wait(60)
        return structure(requests, document)

    monkeypatch.setattr(Requests, "structure", slow)
    heavy = [asyncio.create_task(engine.evaluate_body(body)) for _ in range(6)]
    try:
        await until(lambda: HEAVY_AT_ONCE == len(begun))
        light = orjson.dumps({"model": "jev-latest", "state": "S.", "questions": QUESTIONS})
        assert ["q"] == [*(await engine.evaluate_body(light)).answers]
        assert (HEAVY_AT_ONCE, 6) == (len(begun), engine.in_flight)
    finally:
        release.set()
        await asyncio.gather(*heavy, return_exceptions=True)
    assert 6 == len(begun)
