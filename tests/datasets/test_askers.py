"""Asking a server: what is sent, what is tried again, what refuses a row, what ends the run."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
import stamina

from openjev_core import StartupError
from openjev_core.client import server as server_client
from openjev_core.client.server import ATTEMPTS, SYSTEMONE, Refused, Server
from openjev_core.datasets.askers import HttpAsker, open_http
from openjev_core.datasets.rows import Row
from openjev_core.datasets.runs import open_run, read_run, run_rows
from openjev_core.errors import BackendUnavailable

ANSWERS = {"q": {"type": "noul", "noul": 0.5}}
ANSWER = {"model": "m", "answers": ANSWERS, "usage": {"input_tokens": 7, "output_tokens": 2}}
QUESTIONS = {"q": {"type": "noul", "instructions": "So?"}}


@pytest.fixture(autouse=True)
def _no_waiting():
    with stamina.set_testing(True, attempts=ATTEMPTS):
        yield


def ask(*replies, orders=None):
    """What asking gives when these replies come one after another; and the requests that were made."""
    seen = []
    left = list(replies)

    def handler(request):
        seen.append(request)
        reply = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def run():
        transport = httpx.MockTransport(handler)
        async with httpx.AsyncClient(base_url="http://server", transport=transport) as client:
            server = Server(client, "http://server", SYSTEMONE, 0.2)
            return await HttpAsker(server, orders).ask("Ein Zustand: ü", QUESTIONS)

    try:
        return asyncio.run(run()), seen
    except Exception as error:  # noqa: BLE001 - what it was is what is tested
        return error, seen


def good():
    return httpx.Response(200, json=ANSWER)


def test_a_request_is_sent_as_the_contract_says():
    reply, (request,) = ask(good(), orders="full")

    assert "http://server/v1/systemone" == str(request.url)
    assert {
        "model": "jev-latest",
        "state": "Ein Zustand: ü",
        "questions": QUESTIONS,
        "x_orders": "full",
    } == json.loads(request.content)
    assert ("m", 7, 2) == (reply.model, reply.input_tokens, reply.output_tokens)
    assert ANSWERS == reply.answers


def test_orders_are_left_to_the_server_when_nobody_asks():
    _, (request,) = ask(good())

    assert "x_orders" not in json.loads(request.content)


@pytest.mark.parametrize(
    "fault",
    [
        httpx.Response(529, json={"detail": {"message": "at capacity"}}, headers={"retry-after": "1"}),
        httpx.Response(503, json={"detail": {"message": "unavailable"}}),
        httpx.Response(500, text="oops"),
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
    ],
)
def test_passing_faults_are_tried_again(fault):
    reply, seen = ask(fault, fault, good())

    assert ANSWERS == reply.answers
    assert 3 == len(seen)


def test_faults_that_do_not_pass_end_the_run():
    error, seen = ask(httpx.Response(503, json={"detail": {"error_type": "x", "message": "starting"}}))

    assert isinstance(error, BackendUnavailable)
    assert f"http://server did not answer after {ATTEMPTS} attempts: 503: starting" == str(error)
    assert ATTEMPTS == len(seen)


def test_a_refusal_is_of_the_row_and_not_tried_again():
    detail = [{"loc": ["body", "state", 0], "msg": "too long", "type": "too_long"}]

    error, seen = ask(httpx.Response(422, json={"detail": detail}))

    assert isinstance(error, Refused)
    assert "422: state.0: too long" == str(error)
    assert 1 == len(seen)


def test_a_question_type_that_fails_refuses_its_row_as_it_does_in_this_process():
    detail = {"error_type": "plugin_error", "message": "question type 'coin' failed: reduce raised ValueError"}

    error, seen = ask(httpx.Response(500, json={"detail": detail}))

    assert isinstance(error, Refused)
    assert f"500: {detail['message']}" == str(error)
    assert 1 == len(seen)


def test_a_missing_key_says_what_to_do():
    error, _ = ask(httpx.Response(401, json={"detail": {"message": "missing key"}}))

    assert isinstance(error, StartupError)
    assert "http://server answered 401: missing key; set OPENJEV_API_KEY to its key" == str(error)


def test_another_address_is_named():
    error, _ = ask(httpx.Response(308, headers={"location": "https://server/v1/systemone"}))

    assert "http://server answered 308: an empty body; it points to https://server/v1/systemone, which" in str(error)


USAGE = '"usage": {"input_tokens": 1, "output_tokens": 1}'


@pytest.mark.parametrize(
    "body",
    [
        "hello",
        "[]",
        "{}",
        '{"model": "m", "answers": {}}',
        '{"answers": 1}',
        '{"model": "m", "answers": {"q": 1}, ' + USAGE + "}",
        '{"model": "m", "answers": [1], ' + USAGE + "}",
    ],
)
def test_another_server_is_recognised(body):
    error, _ = ask(httpx.Response(200, text=body))

    assert isinstance(error, StartupError)
    assert str(error).startswith("http://server answered 200 with something that is no answer of this API")


def test_an_answer_without_an_end_is_not_read_to_it(monkeypatch):
    monkeypatch.setattr(server_client, "MOST_REPLY_BYTES", 1000)
    read = []

    async def endless():
        while True:
            read.append(100)
            yield b"x" * 100

    error, _ = ask(httpx.Response(200, content=endless()))

    assert isinstance(error, StartupError)
    assert "http://server: the reply is larger than 1000 bytes, which no answer of this API is" == str(error)
    assert 1100 == sum(read)


def test_an_answer_that_trickles_is_an_attempt_that_failed():
    async def trickling():
        while True:
            await asyncio.sleep(0.01)
            yield b" "

    reply, seen = ask(httpx.Response(200, content=trickling()), good())

    assert ANSWERS == reply.answers
    assert 2 == len(seen)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://server", ""])
def test_an_address_has_a_scheme(url):
    async def run():
        async with open_http(url, orders=None, api_key=None, seconds=1, concurrency=1):
            pass

    with pytest.raises(StartupError, match="begins with http"):
        asyncio.run(run())


@pytest.mark.parametrize(
    "url", ["http://server", "http://server/", "http://server/v1/systemone", "http://server/v1/systemone/"]
)
def test_the_route_may_be_in_the_address(url):
    async def run():
        async with open_http(url, orders=None, api_key="secret", seconds=1, concurrency=1) as asker:
            http = asker.server.client
            return str(http.base_url), http.headers["authorization"]

    assert ("http://server", "Bearer secret") == asyncio.run(run())


def row(number):
    return Row(number=number, place="", id=str(number), state="", questions={}, labels={}, fields={})


def record_of(row, model):
    return {"row": row.number, "id": row.id, "digest": "", "model": model}


def test_no_more_rows_are_in_flight_than_allowed(tmp_path):
    most = running = 0

    async def answer(row):
        nonlocal most, running
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return record_of(row, "m")

    with open_run(tmp_path / "run.jsonl", {}, []) as run:
        asyncio.run(run_rows([row(n) for n in range(20)], answer, run, concurrency=3, answered=lambda: None))

    assert 3 == most
    assert list(range(20)) == sorted(record["row"] for record in read_run(tmp_path / "run.jsonl")[1])


def test_a_run_keeps_to_one_model(tmp_path):
    async def answer(row):
        return record_of(row, f"model {row.number}")

    with open_run(tmp_path / "run.jsonl", {}, []) as run:
        running = run_rows([row(1), row(2)], answer, run, concurrency=1, answered=lambda: None)
        with pytest.raises(StartupError, match="row 2 was answered by 'model 2', and this run was begun"):
            asyncio.run(running)

    assert [1] == [record["row"] for record in read_run(tmp_path / "run.jsonl")[1]]


def test_the_first_fault_ends_the_run_and_keeps_what_is_there(tmp_path):
    async def answer(row):
        if row.number == 2:
            raise BackendUnavailable("gone")
        return record_of(row, "m")

    with open_run(tmp_path / "run.jsonl", {}, []) as run, pytest.raises(BackendUnavailable, match="gone"):
        asyncio.run(run_rows([row(1), row(2), row(3)], answer, run, concurrency=1, answered=lambda: None))

    assert [1] == [record["row"] for record in read_run(tmp_path / "run.jsonl")[1]]
