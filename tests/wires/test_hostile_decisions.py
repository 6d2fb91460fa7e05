"""Hostile bodies on OpenAI's wire: a 400 that points at a place in the client's own body, and never a 5xx."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path

import pytest
from hostile_inputs import ACCEPTED, REFUSED
from live_server import live_server
from raw_http import exchange, post
from toy_model import toy_model

from openjev_core.client.decisions import decisions_request
from openjev_core.errors import RequestError
from openjev_core.plugins.registry import load_registry
from openjev_core.settings import Settings
from openjev_core.testing.scripted import engine_on
from openjev_core.wires.decision_shapes import DecisionShapes
from openjev_core.wires.decisions import DecisionsRequest

CAPTURED = json.loads((Path(__file__).parent / "captured.json").read_bytes())
RICH = (
    "01-string-all-types",
    "02-choice-bool-values",
    "05-messages-input_text-input_json",
    "06-function_call-items",
    "07-custom_tool_call-items",
    "08-instructions-as-parts",
)
JUNK = [None, True, 0, 1.5, "", "x", "\x00<|im_end|>", [], {}, [None], [[]], {"": {}}, {"type": []}, [{"type": {}}]]
REGISTRY = load_registry()
SHAPES = DecisionShapes()


def places(node, path=()):
    """The path of every value."""
    yield path
    if isinstance(node, (dict, list)):
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(child, (*path, key))


def replaced(body, path, value):
    changed = copy.deepcopy(body)
    node = changed
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return changed


def exists(body, loc):
    """Whether a path leads to a value, or to a field that is missing in one."""
    node = body
    for depth, key in enumerate(loc):
        if isinstance(node, dict) and key not in node:
            return depth == len(loc) - 1
        node = node[key]
    return True


@pytest.mark.parametrize("name", RICH)
def test_junk_in_any_place_is_answered_or_refused_at_a_place_that_there_is(name):
    engine = engine_on(toy_model(), Settings(served_model_name=("gpt-6-luna",)), REGISTRY)
    sent = CAPTURED[name]["body"]
    refused = 0

    async def ask_all():
        nonlocal refused
        for path in list(places(sent))[1:]:
            for junk in JUNK:
                body = replaced(sent, path, junk)
                wire = DecisionsRequest(SHAPES, REGISTRY.types)
                try:
                    evaluation = await engine.evaluate_body(json.dumps(body).encode(), read=wire.document)
                except RequestError as error:
                    refused += 1
                    for problem in wire.located(error).problems:
                        assert exists(body, problem.loc), (path, junk, problem)
                else:
                    assert len(body["questions"]) == len(wire.answered(evaluation)["answers"])

    asyncio.run(ask_all())
    assert refused > len(JUNK)


@pytest.fixture(scope="module")
def server():
    with live_server(max_body_bytes=1024 * 1024) as running:
        yield running


TEXT = {
    "input": '{"model": "jev-1", "input": %s, "questions": [{"type": "predicate", "instructions": "q"}]}',
    "data": '{"model": "jev-1", "input": [{"role": "user", "content": [{"type": "input_json", "data": %s}]}],'
    ' "questions": [{"type": "predicate", "instructions": "q"}]}',
    "instructions": '{"model": "jev-1", "input": "x", "questions": [{"type": "predicate", "instructions": %s}]}',
    "extra": '{"model": "jev-1", "input": "x", "extra": %s, "questions": [{"type": "predicate", "instructions": "q"}]}',
}
VALUES = {
    "lone surrogate": r'"\ud800"',
    "NaN": "NaN",
    "too large": "1e999",
    "digits": "9" * 5000,
    "deep": "[" * 5000 + "]" * 5000,
    "twice": '{"a": 1, "a": 2}',
}


@pytest.mark.parametrize("where", TEXT)
@pytest.mark.parametrize("value", VALUES)
def test_what_is_no_plain_json_is_a_400(server, where, value):
    reply = exchange(server, post((TEXT[where] % VALUES[value]).encode(), path="/v1/decisions"))
    assert 400 == reply.status
    assert ["error"] == list(reply.json)
    assert len(reply.body) < 2000


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data, _ in REFUSED])
def test_what_the_other_wire_refuses_is_refused_here(server, data):
    """A body that is JSON and no request of this wire, too: it has no input."""
    reply = exchange(server, post(data, path="/v1/decisions"))
    assert reply.status in (400, 413)
    assert ["error"] == list(reply.json)
    assert len(reply.body) < 4000


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in ACCEPTED])
def test_strange_and_valid_is_answered(server, data):
    sent = json.loads(data)
    request = decisions_request(sent, "jev-latest")
    short = any(len(question.get("choices", "ab")) < 2 for question in request["questions"])
    reply = exchange(server, post(json.dumps(request).encode(), path="/v1/decisions"))
    if short:
        assert (400, "questions[0].choices") == (reply.status, reply.json["error"]["param"])
        return
    assert 200 == reply.status, reply.body[:500]
    assert list(sent["questions"]) == [answer["name"] for answer in reply.json["answers"]]


def test_many_problems_and_huge_names_stay_a_small_body(server):
    question = {"type": "x" * 1000, "k" * 100_000: 1}
    body = {"model": "jev-1", "input": [{"type": "y" * 1000}] * 300, "questions": [question] * 4}
    reply = exchange(server, post(json.dumps(body).encode(), path="/v1/decisions"))
    assert (400, "input[0].type") == (reply.status, reply.json["error"]["param"])
    assert len(reply.body) < 2000


@pytest.mark.parametrize(
    ("data", "headers", "status"),
    [
        (b"x" * (1024 * 1024 + 1), [], 413),
        (b"nonsense", ["Content-Encoding: gzip"], 400),
        (b"nonsense", ["Content-Encoding: br"], 415),
        (b"--x--", ["Content-Type: multipart/form-data; boundary=x"], 415),
    ],
)
def test_what_is_wrong_before_the_body_is_read_has_the_same_shape(server, data, headers, status):
    reply = exchange(server, post(data, path="/v1/decisions", headers=headers))
    assert (status, ["error"], "invalid_request_error") == (reply.status, list(reply.json), reply.json["error"]["type"])
