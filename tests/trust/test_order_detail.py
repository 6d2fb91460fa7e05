"""What each order gave: ``x_detail`` in a request and in its answers."""

from __future__ import annotations

import math

import httpx
import pytest
from attrs import evolve
from live_server import live_server
from scripted_backend import ScriptedBackend, scripted_engine
from toy_model import ToyBackend

from openjev_core.distribution import average_orders

pytestmark = pytest.mark.anyio

TEAM = {"type": "choice", "instructions": "Which?", "criteria": {"billing": "Money", "sales": "Offers"}}
LEVELS = {"type": "score", "criteria": ["low", "middle", "high"]}


def first_favoured(prompt, labels):
    """A script that gives the label A three quarters, wherever it stands, and divides the rest."""
    rest = 0.25 / (len(labels) - 1)
    return [math.log(0.75 if label == "A" else rest) for label in labels]


async def asked(*questions, **more):
    engine = scripted_engine(ScriptedBackend(first_favoured))
    found = await engine.evaluate(state="S.", questions={str(i): one for i, one in enumerate(questions)}, **more)
    return list(found.answers.values())


async def test_each_order_with_its_labels_and_probabilities_in_the_given_order():
    (answer,) = await asked(TEAM, orders="full", detail=True)
    (readout,) = answer["x_detail"]
    assert ["Money", "Offers"] == readout["options"]
    assert [[0, 1], [1, 0]] == [order["order"] for order in readout["orders"]]
    assert [["A", "B"], ["B", "A"]] == [order["labels"] for order in readout["orders"]]
    assert [[0.75, 0.25], [0.25, 0.75]] == [pytest.approx(order["probabilities"]) for order in readout["orders"]]
    assert list(answer["probabilities"].values()) == readout["probabilities"] == pytest.approx([0.5, 0.5])


async def test_what_is_averaged_is_what_is_told():
    (answer,) = await asked(LEVELS, orders=2, detail=True)
    (readout,) = answer["x_detail"]
    logs = [[math.log(p) for p in order["probabilities"]] for order in readout["orders"]]
    assert pytest.approx(average_orders(logs), rel=1e-12) == readout["probabilities"]
    first, second = (order["probabilities"] for order in readout["orders"])
    spread = max(abs(one - other) for one, other in zip(first, second, strict=True))
    assert pytest.approx(spread) == answer["x_order_spread"]


async def test_the_label_mass_of_each_order_where_it_is_known():
    backend = ScriptedBackend(damage=lambda readings: [evolve(one, label_mass=0.5) for one in readings])
    found = await scripted_engine(backend).evaluate(state="S.", questions={"q": TEAM}, orders="full", detail=True)
    assert [0.5, 0.5] == [order["label_mass"] for order in found.answers["q"]["x_detail"][0]["orders"]]


async def test_one_option_is_certain_and_has_no_order():
    (answer,) = await asked({"type": "choice", "criteria": {"only": None}}, detail=True)
    assert [{"options": ["only"], "probabilities": [1.0], "orders": []}] == answer["x_detail"]


@pytest.mark.parametrize("detail", [{}, {"detail": False}])
async def test_nothing_is_told_unasked(detail):
    (answer,) = await asked(TEAM, orders="full", **detail)
    assert "x_detail" not in answer


def test_both_wires_tell_the_same():
    with live_server(backend=ToyBackend()) as server:
        body = {"model": "jev-latest", "state": "S.", "questions": {"q": TEAM}, "x_orders": "full", "x_detail": True}
        mine = httpx.post(f"{server.url}/v1/systemone", json=body).json()["answers"]["q"]
        choices = [{"value": "billing", "description": "Money"}, {"value": "sales", "description": "Offers"}]
        question = {"type": "choice", "name": "q", "instructions": "Which?", "choices": choices}
        body = {"model": "jev-latest", "input": "S.", "questions": [question], "x_orders": "full", "x_detail": True}
        theirs = httpx.post(f"{server.url}/v1/decisions", json=body).json()["answers"][0]
    assert mine["x_detail"][0]["orders"] == theirs["x_detail"][0]["orders"]
    assert mine["x_detail"][0]["probabilities"] == [one["probability"] for one in theirs["probabilities"]]
