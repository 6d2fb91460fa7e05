"""How much of the probability the labels held: in answers, for reducers, on both wires and in the metrics."""

from __future__ import annotations

import asyncio
import itertools

import httpx
import pytest
from attrs import evolve
from live_server import live_server
from scripted_backend import ScriptedBackend, scripted_engine
from toy_model import ToyBackend

from openjev_core.plugins.registry import load_registry

TEAM = {"type": "choice", "criteria": {"billing": None, "sales": None}}
REFUND = {"type": "noul", "instructions": "Is money asked back?"}


def holding(*masses):
    """Damage to a double's readings: each gets the next of these label masses, round and round."""
    numbers = itertools.cycle(masses)
    return lambda readings: [evolve(reading, label_mass=next(numbers)) for reading in readings]


def answers(backend, *types, questions, **asked):
    async def evaluate():
        return await scripted_engine(backend, *types).evaluate(state="Hello.", questions=questions, **asked)

    return asyncio.run(evaluate()).answers


def test_an_answer_has_the_mean_over_its_reads():
    found = answers(ScriptedBackend(damage=holding(0.25, 0.75)), questions={"a": TEAM, "b": REFUND}, orders=2)
    assert {"a": 0.5, "b": 0.5} == {name: answer["x_label_mass"] for name, answer in found.items()}

    found = answers(ScriptedBackend(damage=holding(0.25, 0.75)), questions={"a": TEAM, "b": REFUND})
    assert {"a": 0.25, "b": 0.75} == {name: answer["x_label_mass"] for name, answer in found.items()}


def test_a_read_whose_mass_is_not_known_leaves_the_answer_without():
    found = answers(ScriptedBackend(damage=holding(0.25, None, 0.5, 0.5)), questions={"a": TEAM, "b": TEAM}, orders=2)
    assert "x_label_mass" not in found["a"]
    assert 0.5 == found["b"]["x_label_mass"]


def test_a_mass_of_nothing_is_said():
    assert 0.0 == answers(ScriptedBackend(damage=holding(0.0)), questions={"a": TEAM})["a"]["x_label_mass"]


@pytest.mark.parametrize(("masses", "expected"), [((0.25, 0.5), 0.375), ((None,), None), ((0.25, None), None)])
def test_a_reducer_gets_the_mean_over_the_orders(masses, expected):
    seen = []
    choice = load_registry().types["choice"]

    def reduce(question, distributions):
        seen.extend(distribution.label_mass for distribution in distributions)
        return choice.reduce(question, distributions)

    answers(ScriptedBackend(damage=holding(*masses)), evolve(choice, reduce=reduce), questions={"a": TEAM}, orders=2)

    assert [expected] == seen


def test_the_prior_has_no_part_in_it():
    """Its read comes first: it gets 0.25, and the question 0.75."""

    async def evaluate():
        engine = scripted_engine(ScriptedBackend(damage=holding(0.25, 0.75)), prior="contentless")
        return await engine.evaluate(state="Hello.", questions={"a": REFUND})

    assert 0.75 == asyncio.run(evaluate()).answers["a"]["x_label_mass"]


def test_both_wires_and_the_metrics_have_it():
    predicate = {"type": "predicate", "instructions": "Is money asked back?"}
    with live_server(backend=ToyBackend(damage=holding(0.25))) as server:
        body = {"model": "jev-latest", "state": "Hello.", "questions": {"a": TEAM, "b": REFUND}}
        systemone = httpx.post(server.url + "/v1/systemone", json=body).json()
        body = {"model": "jev-latest", "input": "Hello.", "questions": [predicate]}
        decisions = httpx.post(server.url + "/v1/decisions", json=body).json()
        metrics = httpx.get(server.url + "/metrics").text

    assert [0.25, 0.25] == [answer["x_label_mass"] for answer in systemone["answers"].values()]
    assert [0.25] == [answer["x_label_mass"] for answer in decisions["answers"]]
    assert 'openjev_label_mass_bucket{le="0.1"} 0.0' in metrics
    assert 'openjev_label_mass_bucket{le="0.25"} 3.0' in metrics
    assert "openjev_label_mass_sum 0.75" in metrics


def test_a_mass_that_is_none_is_a_502():
    with live_server(backend=ToyBackend(damage=holding(1.5))) as server:
        body = {"model": "jev-latest", "state": "Hello.", "questions": {"a": TEAM}}
        reply = httpx.post(server.url + "/v1/systemone", json=body)
    assert 502 == reply.status_code
    assert "a label mass of 1.5" in reply.json()["error"]["message"]
