"""OpenAI's wire: what its clients sent once, what its client sends now, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path

import httpx
import openai
import pytest
from live_server import live_server
from toy_model import ToyBackend
from until import eventually

from openjev_core.plugins.registry import load_registry
from openjev_core.wires.decision_shapes import DecisionShapes, json_text
from openjev_core.wires.decisions import DecisionsRequest

CAPTURED = json.loads((Path(__file__).parent / "captured.json").read_bytes())
DECISIONS = {name: sent for name, sent in CAPTURED.items() if sent["path"].startswith("/v1/decisions")}
SYSTEMONE = {name: sent for name, sent in CAPTURED.items() if name not in DECISIONS}
PREDICATE = {"type": "predicate", "instructions": "Is a refund asked for?"}
CHOICE = {"type": "choice", "instructions": "Which team?", "choices": [{"value": "billing"}, {"value": "tech"}]}
SCORE = {"type": "score", "instructions": "How angry?", "levels": [{"label": "calm"}, {"label": "furious"}]}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}


@pytest.fixture(scope="module")
def server():
    with live_server(served_model_name=("gpt-6-luna", "m")) as running:
        yield running


def asked(server, **changes):
    body = {"model": "gpt-6-luna", "input": "I was charged twice.", "questions": [PREDICATE], **changes}
    return httpx.post(server.url + "/v1/decisions", json={k: v for k, v in body.items() if v is not ...})


def check_answer(question, answer):
    assert (question["type"], question.get("name")) == (answer["type"], answer["name"])
    if question["type"] == "predicate":
        assert 0 <= answer["probability"] <= 1
        return
    values = [choice["value"] for choice in question.get("choices", ())] or list(range(len(question["levels"])))
    probabilities = answer["probabilities"]
    assert [(type(v), v) for v in values] == [(type(p["value"]), p["value"]) for p in probabilities]
    assert math.isclose(1, math.fsum(p["probability"] for p in probabilities))
    if question["type"] == "choice":
        best = max(probabilities, key=lambda p: p["probability"])["value"]
        assert (type(best), best) == (type(answer["choice"]), answer["choice"])
    else:
        assert [level["label"] for level in question["levels"]] == [p["label"] for p in probabilities]
        expected = math.fsum(p["value"] * p["probability"] for p in probabilities)
        assert math.isclose(expected, answer["score"])


@pytest.mark.parametrize("name", DECISIONS)
def test_what_clients_sent_is_answered(server, name):
    sent = DECISIONS[name]
    reply = httpx.post(server.url + sent["path"], json=sent["body"], headers=sent["headers"])
    body = reply.json()
    if "image" in name:
        assert 400 == reply.status_code
        assert "no images" in body["error"]["message"]
        assert body["error"]["param"].startswith("input[0].content[")
        return
    assert 200 == reply.status_code, body
    assert ["model", "answers", "usage"] == list(body)
    assert "toy/Toy-1" == body["model"]
    for question, answer in zip(sent["body"]["questions"], body["answers"], strict=True):
        check_answer(question, answer)
    usage = body["usage"]
    assert usage["input_tokens"] + usage["output_tokens"] == usage["total_tokens"]
    assert int(reply.headers["x-openjev-cached-tokens"]) == usage["input_tokens_details"]["cached_tokens"]


@pytest.mark.parametrize("name", SYSTEMONE)
def test_what_clients_sent_to_systemone(server, name):
    sent = SYSTEMONE[name]
    reply = httpx.post(server.url + sent["path"], json=sent["body"], headers=sent["headers"])
    if "image" in name:
        assert 422 == reply.status_code
        (problem,) = reply.json()["detail"]
        assert problem["loc"] in (["body", "assets"], ["body", "images"])
        assert "no images" in problem["msg"]
    elif "x_foo" in json.dumps(sent["body"]):
        assert (422, ["body", "questions", "a", "x_foo"]) == (reply.status_code, reply.json()["detail"][0]["loc"])
    else:
        assert 200 == reply.status_code
        assert list(sent["body"]["questions"]) == list(reply.json()["answers"])


def test_both_wires_give_one_answer(server):
    questions = {
        "p": {"type": "noul", "instructions": "Is a refund asked for?"},
        "c": {"type": "choice", "instructions": "Which team?", "criteria": {"billing": "Money", "tech": None}},
        "s": {"type": "score", "instructions": "How angry?", "criteria": ["calm: Friendly", "furious"]},
    }
    body = {"model": "jev-latest", "state": "Twice!", "questions": questions, "x_orders": "full"}
    systemone = httpx.post(server.url + "/v1/systemone", json=body).json()["answers"]
    choices = [{"value": "billing", "description": "Money"}, {"value": "tech"}]
    levels = [{"label": "calm", "description": "Friendly"}, {"label": "furious"}]
    mine = [PREDICATE, {**CHOICE, "choices": choices}, {**SCORE, "levels": levels}]
    predicate, choice, score = asked(server, input="Twice!", questions=mine, x_orders="full").json()["answers"]
    assert systemone["p"]["noul"] == predicate["probability"]
    assert systemone["c"]["probabilities"] == {p["value"]: p["probability"] for p in choice["probabilities"]}
    assert systemone["s"]["score"] == score["score"]
    for mine, theirs in ((choice, systemone["c"]), (score, systemone["s"])):
        assert (theirs["confidence"], theirs["x_order_spread"]) == (mine["confidence"], mine["x_order_spread"])


def test_items_become_a_chat():
    items = [
        {"role": "developer", "content": [{"type": "input_text", "text": "Be strict."}]},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "Order"}, {"type": "input_json", "data": {"n": 1}}],
        },
        {**CALL, "arguments": '{"id":17}', "namespace": "shop"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "shell", "input": "ls"},
        {"type": "function_call_output", "call_id": "c1", "output": "lost"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "ok"}]},
        {
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hm."}, {"type": "refusal", "refusal": "No."}],
        },
    ]
    body = {"model": "m", "input": items, "questions": [PREDICATE]}
    wire = DecisionsRequest(DecisionShapes(), load_registry().types)
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "shop.f", "arguments": '{"id":17}'}},
        {"id": "c2", "type": "custom", "custom": {"name": "shell", "input": "ls"}},
    ]
    assert wire.document(json.dumps(body).encode()) == {
        "model": "m",
        "state": [
            {"role": "developer", "content": [{"type": "text", "text": "Be strict."}]},
            {"role": "user", "content": 'Order\n{"n":1}'},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": "lost"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "ok"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "Hm."}, {"type": "text", "text": "No."}]},
        ],
        "questions": {"0": {"type": "noul", "instructions": "Is a refund asked for?"}},
    }


def deep(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def user(*parts):
    return [{"role": "user", "content": list(parts)}]


def of_json(data):
    return user({"type": "input_json", "data": data})


def test_json_of_32_levels_is_read(server):
    assert 200 == asked(server, input=of_json(deep(32))).status_code


def test_as_much_json_as_a_part_may_hold_is_read():
    """The server's own limits come first, so the wire's are tried without it."""
    many, long = list(range(9_999)), "é" * (128 * 1024 - 1)
    assert many == json.loads(json_text(many))
    assert f'"{long}"' == json_text(long)


def of_choices(*values):
    return [{**CHOICE, "choices": [{"value": value} for value in values]}]


WRONG = [
    ({"input": ...}, "input", "missing"),
    ({"questions": ...}, "questions", "missing"),
    ({"model": 1}, "model", "expected a string"),
    ({"input": []}, "input", "non-empty array"),
    ({"input": {"a": 1}}, "input", "expected a string or a non-empty array of items"),
    ({"input": [1]}, "input[0]", "expected an object with a type"),
    ({"input": [{"type": "reasoning"}]}, "input[0].type", "unknown type 'reasoning'; accepted: message, function_call"),
    ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role", "unknown role 'tool'; accepted: user, developer"),
    ({"input": [{"role": "user"}]}, "input[0].content", "missing"),
    ({"input": [{"role": "user", "content": "x", "words": 1}]}, "input[0].words", "unknown field"),
    (
        {"input": user({"type": "output_text", "text": "x"})},
        "input[0].content[0].type",
        "accepted: input_text, input_json",
    ),
    ({"input": user({"type": "input_text", "text": 1})}, "input[0].content[0].text", "expected a string"),
    ({"input": user({"type": "input_image", "image_url": "u"})}, "input[0].content[0].type", "no images"),
    ({"input": of_json(deep(33))}, "input[0].content[0].data", "more than 32 arrays"),
    (
        {"input": of_json(list(range(10_000)))},
        "input[0].content[0].data",
        "at most 10000 JSON values, found 10001",
    ),
    ({"input": of_json("é" * 128 * 1024)}, "input[0].content[0].data", "at most 262144 bytes"),
    (
        {"questions": [{**PREDICATE, "instructions": [{"type": "input_json", "data": deep(33)}]}]},
        "questions[0].instructions[0].data",
        "more than 32 arrays",
    ),
    (
        {"input": [{"type": "function_call_output", "call_id": "c1", "output": "x"}]},
        "input[0].call_id",
        "no function_call",
    ),
    (
        {"input": [CALL, {"type": "custom_tool_call_output", "call_id": "c1", "output": "x"}]},
        "input[1].call_id",
        "no custom_tool_call before it",
    ),
    ({"input": [CALL, CALL]}, "input[1].call_id", "each call needs its own"),
    (
        {"input": [{"role": "user", "content": "x"}, {**CALL, "arguments": "no"}]},
        "input[1]",
        "expected a JSON object, or its text",
    ),
    ({"questions": {"q": PREDICATE}}, "questions", "expected an array"),
    ({"questions": []}, "questions", "takes 1 to 64 questions"),
    ({"questions": [PREDICATE] * 401}, "questions", "found 401"),
    ({"questions": [PREDICATE, {"type": "noul"}]}, "questions[1].type", "accepted: predicate, choice, score"),
    ({"questions": [{"type": "predicate"}]}, "questions[0].instructions", "missing"),
    ({"questions": [{**PREDICATE, "instructions": " "}]}, "questions[0].instructions", "blank instructions"),
    ({"questions": [{**PREDICATE, "criteria": {}}]}, "questions[0].criteria", "unknown field"),
    ({"questions": of_choices("a", "b", "a")}, "questions[0].choices[2].value", "an earlier choice has this value"),
    (
        {"questions": of_choices(True, "true", True)},
        "questions[0].choices[2].value",
        "an earlier choice has this value",
    ),
    ({"questions": of_choices("a", 1)}, "questions[0].choices[1].value", "expected a string"),
    ({"questions": of_choices("a")}, "questions[0].choices", "takes 2 choices or more, found 1"),
    ({"questions": [{**SCORE, "levels": []}]}, "questions[0].levels", "found 0"),
    ({"questions": of_choices(*map(str, range(65)))}, "questions[0].choices", "found 65"),
    (
        {"questions": [{**SCORE, "levels": [{"label": "a"}, {"description": "b"}]}]},
        "questions[0].levels[1].label",
        "missing",
    ),
    ({"x_orders": 0}, "x_orders", "expected an integer"),
    ({"assets": {"a": 1}}, "assets", "no images"),
]


@pytest.mark.parametrize(
    ("changes", "param", "message"), WRONG, ids=[f"{index}-{w[1]}" for index, w in enumerate(WRONG)]
)
def test_bad_input_is_a_400_that_points_at_it(server, changes, param, message):
    reply = asked(server, **changes)
    assert 400 == reply.status_code, reply.text
    error = reply.json()["error"]
    assert ("invalid_request_error", param) == (error["type"], error["param"])
    assert message in error["message"]
    assert ["error"] == list(reply.json())


def test_what_is_no_json_has_no_place(server):
    reply = httpx.post(server.url + "/v1/decisions", content=b"{")
    assert (400, None, "json_invalid") == (
        reply.status_code,
        reply.json()["error"]["param"],
        reply.json()["error"]["code"],
    )


def test_an_unknown_model_and_an_unknown_method(server):
    reply = asked(server, model="gpt-5")
    assert 404 == reply.status_code
    assert ("model_not_found", "model") == (reply.json()["error"]["code"], reply.json()["error"]["param"])
    wrong = httpx.get(server.url + "/v1/decisions")
    assert (405, ["error"]) == (wrong.status_code, list(wrong.json()))


def test_a_type_that_is_not_installed_is_named():
    wire = DecisionsRequest(DecisionShapes(), {"choice": None})
    with pytest.raises(Exception, match=r"questions\.0\.type: a predicate is answered by the question type 'noul'"):
        wire.document(json.dumps({"model": "m", "input": "x", "questions": [PREDICATE, CHOICE]}).encode())


def test_the_official_client(server):
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="any")
    decision = client.decisions.create(
        model="gpt-6-luna",
        input=[{"role": "user", "content": "I was charged twice."}],
        questions=[{**PREDICATE, "name": "p"}, {**CHOICE, "choices": [{"value": True}, {"value": "true"}]}, SCORE],
        extra_body={"x_orders": "full"},
    )
    predicate, choice, score = decision.answers
    assert ("predicate", "p") == (predicate.type, predicate.name)
    assert 0 <= predicate.probability <= 1
    assert [bool, str] == [type(p.value) for p in choice.probabilities]
    assert ["calm", "furious"] == [p.label for p in score.probabilities]
    assert decision.usage.total_tokens == decision.usage.input_tokens + decision.usage.output_tokens
    assert decision._request_id.startswith("req_")
    with pytest.raises(openai.BadRequestError) as refused:
        client.decisions.create(model="gpt-6-luna", input="x", questions=[{**PREDICATE, "instructions": ""}])
    assert ("questions[0].instructions", "invalid_request_error") == (refused.value.param, refused.value.type)
    with pytest.raises(openai.NotFoundError) as unknown:
        client.decisions.create(model="other", input="x", questions=[PREDICATE])
    assert "model_not_found" == unknown.value.code


def test_the_official_client_is_asynchronous(server):
    async def ask():
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="any") as client:
            return await asyncio.gather(
                *(
                    client.decisions.create(model="m", input=f"State {n}", questions=[PREDICATE, SCORE])
                    for n in range(4)
                )
            )

    for decision in asyncio.run(ask()):
        assert ["predicate", "score"] == [answer.type for answer in decision.answers]


def test_keys_and_capacity_as_the_official_client_expects_them():
    backend = ToyBackend(seconds=30.0)
    with live_server(backend=backend, api_key=("right",), max_concurrent_requests=1) as running:
        ask = {"model": "jev-latest", "input": "x", "questions": [PREDICATE]}
        with pytest.raises(openai.AuthenticationError) as refused:
            openai.OpenAI(base_url=running.url + "/v1", api_key="wrong").decisions.create(**ask)
        assert "invalid_api_key" == refused.value.code
        client = openai.OpenAI(base_url=running.url + "/v1", api_key="right", max_retries=0)

        async def two():
            async with openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="right", max_retries=0) as first:
                waiting = asyncio.create_task(first.decisions.create(**ask))
                assert await asyncio.to_thread(eventually, lambda: backend.running == 1)
                with pytest.raises(openai.RateLimitError) as full:
                    await asyncio.to_thread(client.decisions.create, **ask)
                waiting.cancel()
                return full.value

        full = asyncio.run(two())
        assert ("at_capacity", "1", "1000") == (
            full.code,
            full.response.headers["retry-after"],
            full.response.headers["retry-after-ms"],
        )


def test_one_line_in_the_log_and_one_label_in_the_metrics(server):
    asked(server, questions=[PREDICATE, CHOICE])
    metrics = httpx.get(server.url + "/metrics").text
    assert 'openjev_requests_total{route="/v1/decisions",status="200"}' in metrics
    assert 'openjev_questions_total{status="200",type="noul"}' in metrics
