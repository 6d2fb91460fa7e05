"""The Model Context Protocol's own client, over real standard input and output and over real HTTP."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from pathlib import Path

import httpx
import pytest
from live_server import live_server
from openjev_process import OPENJEV, clean_environment
from scripted_backend import ScriptedBackend
from survey_type import SURVEY
from toy_model import ToyBackend
from until import until

from openjev_core.errors import BackendUnavailable
from openjev_core.plugins.registry import load_registry, registry_of

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

ERAS = ("auto", "legacy")
"""The protocol as it is, and the one with a handshake that older clients speak."""

STATE = "I was charged twice."
QUESTION = "Is a refund asked for?"
DECIDE = {"state": STATE, "instructions": QUESTION}


def child(*args):
    return stdio_client(StdioServerParameters(command=str(OPENJEV), args=["mcp", *args], env=clean_environment()))


async def check_tools(client, answer_of):
    """List the tools, and ask each; every answer is what a request to the API gets."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert ["decide", "choose", "score", "ask"] == list(tools)
    assert {True} == {tool.annotations.read_only_hint for tool in tools.values()}
    steps = []

    async def progress(done, total, message):
        steps.append((done, total))

    decided = await client.call_tool("decide", DECIDE, progress_callback=progress)
    assert [(0, 1), (1, 1)] == steps
    assert not decided.is_error
    assert decided.structured_content == json.loads(decided.content[0].text)
    assert answer_of({"type": "noul", "instructions": QUESTION}) == decided.structured_content
    choice = {"criteria": {"billing": "Payments", "tech": None}}
    chosen = (await client.call_tool("choose", {"state": STATE, **choice})).structured_content
    assert answer_of({"type": "choice", **choice}) == chosen
    assert math.isclose(1, math.fsum(chosen["probabilities"].values()))
    levels = {"criteria": ["calm", "angry", "furious"], "instructions": "How angry?"}
    scored = (await client.call_tool("score", {"state": STATE, **levels})).structured_content
    assert answer_of({"type": "score", **levels}) == scored
    questions = {"n": {"type": "noul", "instructions": QUESTION}, "c": {"type": "choice", **choice}}
    asked = (await client.call_tool("ask", {"state": STATE, "questions": questions})).structured_content
    assert {"n": decided.structured_content, "c": chosen} == asked["answers"]
    assert asked["usage"]["input_tokens"] > 0


WRONG = [
    ("decide", {"state": STATE}, "instructions: "),
    ("decide", {"instructions": QUESTION}, "state: missing"),
    ("decide", {**DECIDE, "state": 1.5}, "state: expected a string, an object or an array"),
    ("decide", {**DECIDE, "type": "noul"}, "type: unknown argument; accepted: state, "),
    ("decide", {**DECIDE, "criteria": {"maybe": "x"}}, "criteria.maybe: "),
    ("choose", {"state": STATE, "criteria": {"a": 1, "b": None}}, "criteria.a: expected a string"),
    ("choose", {"state": STATE, "criteria": ["a", "b"]}, "criteria: expected an object"),
    ("score", {"state": STATE, "criteria": ["a", None]}, "criteria.1: "),
    ("ask", {"state": STATE, "questions": {}}, "questions: a request takes 1 to 64 questions"),
    ("ask", {"state": STATE, "questions": {"q": {"type": "x"}}}, "questions.q.type: "),
    ("ask", {"state": STATE, "questions": [1]}, "questions: expected an object"),
    ("ask", {"state": STATE, "questions": {"q": {"type": "noul", "instructions": "?"}}, "x_orders": 0}, "x_orders: "),
    ("ask", {}, "state: missing; this field is required; questions: missing"),
]


async def check_refusals(client):
    for name, arguments, text in WRONG:
        refused = await client.call_tool(name, arguments)
        assert refused.is_error, (name, arguments)
        assert refused.content[0].text.startswith(text), refused.content[0].text
        assert "Traceback" not in refused.content[0].text
    with pytest.raises(MCPError, match="there is no tool 'other'; tools: decide, choose, score, ask"):
        await client.call_tool("other", {})


def answers_at(url):
    def answer_of(question):
        body = {"model": "jev-latest", "state": STATE, "questions": {"q": question}}
        return httpx.post(url + "/v1/systemone", json=body).json()["answers"]["q"]

    return answer_of


@pytest.fixture(scope="module")
def server():
    with live_server(mcp=True) as running:
        yield running


@pytest.mark.parametrize("era", ERAS)
def test_tools_over_http(server, era):
    async def run():
        async with Client(server.url + "/mcp", mode=era) as client:
            await check_tools(client, answers_at(server.url))
            await check_refusals(client)

    asyncio.run(run())


def test_tools_over_standard_input_and_output_of_the_embedded_engine():
    async def run():
        async with Client(child()) as client:
            await check_refusals(client)
            chosen = await client.call_tool("choose", {"state": STATE, "criteria": {"a": None, "b": None}})
            assert {"a", "b"} == set(chosen.structured_content["probabilities"])
            assert math.isclose(1, math.fsum(chosen.structured_content["probabilities"].values()))

    asyncio.run(run())


@pytest.mark.parametrize("era", ERAS)
def test_a_cancelled_call_ends_its_work(era, tmp_path):
    waiting = Path(__file__).parent.parent / "doubles" / "mcp_waiting.py"
    parameters = StdioServerParameters(command=sys.executable, args=[str(waiting)], env=clean_environment())
    said = tmp_path / "said"

    async def run():
        async with Client(stdio_client(parameters, errlog=errors), mode=era) as client:
            call = asyncio.create_task(client.call_tool("decide", DECIDE))
            await until(lambda: "begun" in said.read_text())
            assert "cancelled" not in said.read_text()
            call.cancel()
            await until(lambda: "cancelled" in said.read_text())
            assert 4 == len((await client.list_tools()).tools)

    with said.open("w") as errors:
        asyncio.run(run())


def test_a_closed_response_cancels_its_call():
    backend = ToyBackend(seconds=60.0)
    with live_server(backend=backend, mcp=True) as running:

        async def run():
            async with Client(running.url + "/mcp") as client:
                call = asyncio.create_task(client.call_tool("decide", DECIDE))
                await until(lambda: backend.running)
                call.cancel()
                await until(lambda: backend.cancelled)

        asyncio.run(run())
        metrics = httpx.get(running.url + "/metrics").text
    assert (0, 0) == (backend.open, running.engine.in_flight)
    assert "openjev_hang_ups_total 1.0" in metrics


def test_the_library_works_on_twice_as_many_calls_as_evaluations_are_admitted():
    """It takes up to 16 times a body's bytes before an evaluation could be refused."""
    backend = ToyBackend(seconds=60.0)
    with live_server(backend=backend, mcp=True, max_concurrent_requests=1) as running:
        running.engine._admission._recent.append(0.01)  # so one more waits for a place

        async def run():
            async with httpx.AsyncClient(base_url=running.url, headers=HEADERS) as client:
                calls = [asyncio.create_task(client.post("/mcp", json=CALL)) for _ in range(2)]
                await until(lambda: (1, 1) == (running.engine.in_flight, running.engine.waiting))
                reply = await client.post("/mcp", json=CALL)
                assert (529, "at_capacity") == (reply.status_code, reply.json()["detail"]["error_type"])
                assert "retry-after" in reply.headers
                for call in calls:
                    call.cancel()

        asyncio.run(run())


def test_a_stop_ends_what_is_running():
    backend = ToyBackend(seconds=60.0)
    with live_server(backend=backend, mcp=True, grace_period=0.1) as running:

        async def run():
            async with Client(running.url + "/mcp") as client:
                call = asyncio.create_task(client.call_tool("decide", DECIDE))
                await until(lambda: backend.running)
                running.stop()
                with pytest.raises(MCPError):
                    await call

        asyncio.run(run())
    assert 1 == backend.cancelled


def test_an_evaluation_counts_once_whichever_way_it_came(server):
    async def run():
        async with Client(server.url + "/mcp") as client:
            await client.call_tool("ask", {"state": "x", "questions": {"q": {"type": "noul", "instructions": "?"}}})

    def counted():
        lines = httpx.get(server.url + "/metrics").text.splitlines()
        return {
            name: next((float(line.split()[-1]) for line in lines if line.startswith(name)), 0.0)
            for name in ('openjev_questions_total{status="200",type="noul"}', "openjev_evaluation_seconds_count")
        }

    before = counted()
    asyncio.run(run())
    assert {name: count + 1 for name, count in before.items()} == counted()


def test_a_plugins_type_is_in_the_general_tool():
    with live_server(registry=registry_of(*load_registry().types.values(), SURVEY), mcp=True) as running:

        async def run():
            async with Client(running.url + "/mcp") as client:
                (tool,) = [tool for tool in (await client.list_tools()).tools if "ask" == tool.name]
                assert {"Question", "Answer", "survey.question", "survey.answer"} <= {
                    *tool.input_schema["$defs"],
                    *tool.output_schema["$defs"],
                }
                assert f"survey: {SURVEY.summary}" in tool.description

        asyncio.run(run())


def test_faults_are_the_tools_errors_and_tell_no_address():
    backend = ScriptedBackend(error=BackendUnavailable("http://10.0.0.7:30000: refused"))
    with live_server(backend=backend, mcp=True) as running:

        async def run(text):
            async with Client(running.url + "/mcp") as client:
                failed = await client.call_tool("decide", DECIDE)
                assert failed.is_error
                assert text == failed.content[0].text

        asyncio.run(run("the backend does not answer; send the request again shortly"))
        backend.error = ZeroDivisionError("secret")
        asyncio.run(run("the engine broke its contract: reading raised ZeroDivisionError"))


CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "decide", "arguments": DECIDE}}
HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}


def posted(url, **changes):
    return httpx.post(url + "/mcp", **{"json": CALL, **changes, "headers": {**HEADERS, **changes.get("headers", {})}})


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 200),
        ({"headers": {"origin": "http://localhost:3000"}}, 200),
        ({"headers": {"origin": "https://app.example"}}, 200),
        ({"headers": {"origin": "https://evil.example"}}, 403),
        ({"headers": {"origin": "null"}}, 403),
        ({"content": b"x" * 5000, "json": None}, 413),
        ({"content": b"{", "json": None, "headers": {"content-type": "application/json"}}, 400),
        ({"content": b"nonsense", "json": None, "headers": {"content-encoding": "br"}}, 415),
    ],
)
def test_what_is_refused_before_the_protocol_is_read(limited, changes, status):
    reply = posted(limited.url, **changes)
    assert status == reply.status_code, reply.text
    assert reply.headers["x-request-id"]


@pytest.fixture(scope="module")
def limited():
    with live_server(mcp=True, max_body_bytes=4096, cors_origins=("https://app.example",)) as running:
        yield running


def test_a_key_is_needed_where_there_is_one():
    with live_server(mcp=True, api_key=("right",)) as running:
        assert 401 == posted(running.url).status_code
        assert 200 == posted(running.url, headers={"authorization": "Bearer right"}).status_code

        async def run():
            async with (
                httpx.AsyncClient(headers={"authorization": "Bearer right"}) as keyed,
                Client(streamable_http_client(running.url + "/mcp", http_client=keyed)) as client,
            ):
                return await client.call_tool("decide", DECIDE)

        assert not asyncio.run(run()).is_error


def test_it_is_no_route_unless_it_is_switched_on():
    with live_server() as running:
        assert 404 == posted(running.url).status_code
    with live_server(mcp=True) as running:
        assert 405 == httpx.get(running.url + "/mcp").status_code
