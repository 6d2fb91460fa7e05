"""Smoke checks against servers that lie, break off, hang or never start."""

from __future__ import annotations

import json
import socket

import pytest
from live_server import live_server
from lying_server import lying_server

from openjev_core.plugins.registry import load_registry
from openjev_core.smoke import server as smoke_server
from openjev_core.smoke.checks import Examination, contract_checks
from openjev_core.smoke.report import run_checks, smoke
from openjev_core.smoke.server import Call, open_server, pause_before_retry

pytestmark = pytest.mark.anyio

EVALUATION = "/v1/systemone"


@pytest.fixture(scope="module")
def truth():
    with live_server() as server:
        yield server.url


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(smoke_server, "POLL_SECONDS", 0.02)


async def examine(truth, lie, **options):
    with lying_server(truth, lie) as url:
        options = {"registry": load_registry(), "semantics": False, "startup_timeout": 5, "call_timeout": 10, **options}
        return await smoke(url, **options)


async def verdict_on(truth, lie, name="state: chat transcript"):
    """What becomes of one check."""
    registry = load_registry()
    (check,) = [check for check in contract_checks(registry) if check.name == name]
    with lying_server(truth, lie) as url:
        async with open_server(url, None, 10) as server:
            (verdict,) = await run_checks(
                (check,), Examination(server, "toy/Toy-1", registry, []), lambda _verdict: None
            )
    json.dumps(verdict.json(), allow_nan=False)
    return verdict


def problems(report):
    return {verdict.name: verdict.problem for verdict in report.verdicts if verdict.status == "failed"}


def of_answer(change):
    """A change of the first answer."""
    return lambda reply: change(next(iter(reply["answers"].values())))


@pytest.mark.parametrize(
    ("type", "change", "problem"),
    [
        ("noul", of_answer(lambda a: a.update(noul=1.5)), "expected probabilities from 0 to 1 that sum to 1, found"),
        ("noul", of_answer(lambda a: a.update(noul="0.5")), "noul: expected a number, found a string; found {"),
        ("noul", of_answer(lambda a: a.update(noul=True)), "noul: expected a number, found true or false"),
        ("noul", of_answer(lambda a: a.update(noul=None)), "noul: expected a number, found null"),
        ("noul", of_answer(lambda a: a.pop("noul")), "expected an answer of type noul: noul: missing"),
        ("noul", of_answer(lambda a: a.update(confidence=1)), "confidence: unknown field"),
        (
            "noul",
            of_answer(lambda a: a.update(type="choice")),
            'expected an answer of type noul, found {"type":"choice',
        ),
        ("noul", of_answer(dict.clear), "expected an answer of type noul, found {}"),
        ("noul", lambda r: r.update(answers=[]), "expected model 'toy/Toy-1', answers and usage, found {"),
        ("noul", lambda r: r["answers"].update(other={}), "expected answers to ['example 1', 'example 2'], in this"),
        ("noul", lambda r: r.update(model="gpt"), "expected model 'toy/Toy-1', answers and usage, found"),
        ("noul", lambda r: r.pop("usage"), "expected model 'toy/Toy-1', answers and usage, found"),
        ("choice", of_answer(lambda a: a["probabilities"].update(x=0.999)), "expected probabilities from 0 to 1 that"),
        ("choice", of_answer(lambda a: a["probabilities"].popitem()), "expected probabilities from 0 to 1 that sum to"),
        ("choice", of_answer(lambda a: a.update(choice=["billing"])), "choice: expected a string, found an array"),
        ("score", of_answer(lambda a: a.update(probabilities=7)), "probabilities: expected an object, found an int"),
        ("score", of_answer(lambda a: a.update(x_error={}, score=None)), "score: expected a number, found null"),
    ],
)
async def test_finds_a_wrong_answer(truth, type, change, problem):
    def lie(heard):
        if heard.path == EVALUATION and heard.status == 200:
            reply = heard.json
            change(reply)
            heard.json = reply

    verdict = await verdict_on(truth, lie, f"plugin: {type}")

    assert problem in verdict.problem


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
async def test_finds_a_number_that_is_no_json(truth, literal):
    def lie(heard):
        if heard.path == EVALUATION and heard.status == 200:
            heard.body = heard.body.replace(b'"noul":0', b'"noul":' + literal.encode() + b',"x_rest":0')

    verdict = await verdict_on(truth, lie)

    assert "POST /v1/systemone: expected JSON, but " in verdict.problem


@pytest.mark.parametrize(
    ("lie", "problem"),
    [
        (lambda h: setattr(h, "body", b"<html>hello</html>"), "expected JSON, but the body is not JSON"),
        (lambda h: setattr(h, "body", b""), "expected JSON, but the body is not JSON"),
        (lambda h: setattr(h, "body", b"[" * 100_000), "expected JSON, but the body is nested too deep"),
        (lambda h: setattr(h, "body", b"\xff"), "not valid UTF-8"),
        (lambda h: setattr(h, "body", b"null"), "answers and usage, found null"),
        (lambda h: setattr(h, "status", 500), "expected status 200, found status 500"),
        (lambda h: setattr(h, "status", 204), "expected status 200, found status 204"),
        (lambda h: h.headers.pop("x-openjev-prefix-tokens", 0), "expected a header x-openjev-prefix-tokens"),
        (
            lambda h: h.headers.update({"x-openjev-cached-tokens": "many"}),
            "expected the header x-openjev-cached-tokens to be a count, found 'many'",
        ),
        (lambda h: b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhalf", "RemoteProtocolError"),
        (lambda h: b"garbage\r\n\r\n", "RemoteProtocolError"),
        (lambda h: b"", "RemoteProtocolError"),
        (lambda h: b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nhalf", "DecodingError"),
    ],
)
async def test_finds_a_wrong_reply(truth, lie, problem):
    verdict = await verdict_on(truth, lambda heard: lie(heard) if heard.path == EVALUATION else None)

    assert problem in verdict.problem


@pytest.mark.parametrize(
    "limits", [b"[]", b"{}", b'{"max_answers_per_question":true}', b'{"max_answers_per_question":0}']
)
async def test_finds_a_missing_limit(truth, limits):
    def lie(heard):
        if heard.path == "/v1/limits":
            heard.body = limits

    verdict = await verdict_on(truth, lie, "as many answers as allowed")

    assert "expected /v1/limits to name max_answers_per_question, found" in verdict.problem


async def test_reads_no_endless_reply(truth):
    def lie(heard):
        if heard.path == EVALUATION:
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
            return (head, *(b"x" * 1_000_000 for _ in range(12)))
        return None

    verdict = await verdict_on(truth, lie)

    assert "ReplyTooLarge: the reply is larger than 8388608 bytes" in verdict.problem


def hanging(heard):
    """Send nothing until the server is closed."""
    heard.over.wait(30)
    return b""


def trickling(heard):
    """Send one byte after another, so that no single wait is long."""

    def pieces():
        yield b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"
        while not heard.over.wait(0.05):
            yield b" "

    return pieces()


@pytest.mark.parametrize("way", [hanging, trickling])
async def test_stops_trying_a_server_that_hangs(truth, way):
    report = await examine(truth, lambda h: way(h) if h.path == EVALUATION else None, call_timeout=0.4)

    assert {"passed": 2, "failed": 1, "skipped": len(report.verdicts) - 3} == report.counts
    assert (
        "expected status 200, found no whole reply within 0.4 seconds"
        in (problems(report)["three types in one request"])
    )
    assert not report.passed


async def test_asks_a_busy_server_again(truth):
    def lie(heard):
        if heard.path == EVALUATION and heard.count < 3:
            heard.status = (529, 503, 429)[heard.count]
            heard.headers["retry-after"] = ("0", "0.01", "-5")[heard.count]

    verdict = await verdict_on(truth, lie)

    assert "passed" == verdict.status
    assert [529, 503, 429, 200] == [call.status for call in verdict.calls]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("0", 0.0), ("2.5", 2.5), ("3600", 5.0), ("-1", 0.0), ("nan", 1.0), ("inf", 5.0), ("soon", 1.0), ("", 1.0)],
)
def test_waits_no_longer_than_a_few_seconds(header, seconds):
    assert seconds == pause_before_retry(Call(method="POST", path="/", seconds=0, headers={"retry-after": header}))


async def test_gives_up_on_a_server_that_stays_busy(truth):
    def lie(heard):
        if heard.path == EVALUATION:
            heard.status = 503
            heard.headers["retry-after"] = "0"

    verdict = await verdict_on(truth, lie)

    assert "expected status 200, found status 503" in verdict.problem
    assert [503] * 4 == [call.status for call in verdict.calls]


async def test_waits_for_a_server_that_starts(truth):
    lines = []

    def lie(heard):
        if heard.path == "/health" and heard.count < 4:
            heard.status = 503

    report = await examine(truth, lie, progress=lines.append)

    assert report.passed
    assert 1 == len(lines)
    assert lines[0].endswith("status 503")
    assert report.startup_seconds >= 4 * 0.02


async def test_gives_up_on_503_for_ever(truth):
    report = await examine(truth, lambda heard: setattr(heard, "status", 503), startup_timeout=0.3)

    assert [("ready", "failed")] == [(verdict.name, verdict.status) for verdict in report.verdicts]
    assert problems(report)["ready"].startswith("not ready after ")
    assert report.startup_seconds is None
    assert not report.passed
    assert [503] == [call["status"] for call in report.json()["checks"][0]["calls"]]


async def test_gives_up_where_nothing_listens(free_port):
    report = await smoke(f"http://127.0.0.1:{free_port}", registry=load_registry(), startup_timeout=0.2)

    assert "not ready after 0 seconds: ConnectError" in problems(report)["ready"]


async def test_gives_up_on_a_server_that_accepts_and_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        report = await smoke(
            f"http://127.0.0.1:{silent.getsockname()[1]}", registry=load_registry(), startup_timeout=0.3
        )

    assert "no whole reply within" in problems(report)["ready"]


@pytest.mark.parametrize(
    ("status", "headers", "problem"),
    [
        (404, {}, "expected /health to say 200 or 503, found status 404"),
        (
            301,
            {"location": "https://x/"},
            "expected /health to say 200 or 503, found status 301, which points to https://x/",
        ),
        (401, {}, "expected /health to say 200 or 503, found status 401"),
    ],
)
async def test_waits_for_no_server_that_will_never_be_ready(truth, status, headers, problem):
    def lie(heard):
        heard.status = status
        heard.headers.update(headers)

    report = await examine(truth, lie, startup_timeout=30)

    assert problem == problems(report)["ready"]


@pytest.mark.parametrize(
    "body",
    [
        b"starting, please wait",
        b"[]",
        b"{}",
        b'{"status":"ok","startup_seconds":1,"model":null,"backend":{"name":"b"}}',
        b'{"status":"ok","startup_seconds":1,"model":"m","backend":{}}',
        b'{"status":"meh","startup_seconds":1,"model":"m","backend":{"name":"b"}}',
    ],
)
async def test_knows_another_server_when_it_sees_one(truth, body):
    report = await examine(truth, lambda heard: setattr(heard, "body", body), startup_timeout=30)

    assert problems(report)["ready"].startswith("/health answers, but not as this server: ")
