"""Smoke checks against servers that lie, break off, hang or never start."""

from __future__ import annotations

import json
import socket
import time

import pytest
from live_server import live_server
from lying_server import lying_server

from openjev_core.plugins.registry import load_registry
from openjev_core.smoke import startup
from openjev_core.smoke.calls import Call, Service
from openjev_core.smoke.checks import CONTRACT
from openjev_core.smoke.examination import Examination, pause_before_retry
from openjev_core.smoke.run import run_checks, schema_check, smoke
from openjev_core.smoke.verdicts import verdict_as_json

pytestmark = pytest.mark.anyio

EVALUATION = "/v1/systemone"


@pytest.fixture(scope="module")
def truth():
    with live_server() as server:
        yield server.url


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(startup, "POLL_SECONDS", 0.02)


async def examine(truth, lie, **options):
    with lying_server(truth, lie) as url:
        options = {"registry": load_registry(), "semantics": False, "startup_timeout": 5, "call_timeout": 10, **options}
        return await smoke(url, **options)


async def verdict_on(truth, lie, name):
    """What becomes of one check."""
    registry = load_registry()
    (check,) = [check for check in (*CONTRACT, schema_check(registry)) if check.name == name]
    with lying_server(truth, lie) as url:
        async with Service(url, patience=10) as service:
            (verdict,) = await run_checks((check,), Examination(service, "toy/Toy-1"), lambda _verdict: None)
    json.dumps(verdict_as_json(verdict), allow_nan=False)
    return verdict


def problems(report):
    return {verdict.name: verdict.problem for verdict in report.verdicts if verdict.status == "failed"}


def altering(check_of, change):
    """A lie that alters the JSON of the replies to evaluations whose first question has the type ``check_of``."""

    def lie(heard):
        if heard.path == EVALUATION and heard.status == 200:
            questions = heard.sent["questions"]
            if {check_of} == {question["type"] for question in questions.values()}:
                reply = heard.json
                change(reply)
                heard.json = reply

    return lie


def of_answer(change):
    """A change of the first answer."""
    return lambda reply: change(next(iter(reply["answers"].values())))


@pytest.mark.parametrize(
    ("type", "change", "problem"),
    [
        ("noul", of_answer(lambda a: a.update(noul=1.5)), "expected noul to be a number from 0 to 1, found 1.5"),
        ("noul", of_answer(lambda a: a.update(noul="0.5")), 'expected noul to be a number from 0 to 1, found "0.5"'),
        ("noul", of_answer(lambda a: a.update(noul=True)), "expected noul to be a number from 0 to 1, found true"),
        ("noul", of_answer(lambda a: a.update(noul=None)), "expected noul to be a number from 0 to 1, found null"),
        ("noul", of_answer(lambda a: a.pop("noul")), "expected a noul's answer to have noul, found {"),
        ("noul", of_answer(lambda a: a.update(confidence=1)), "expected a noul's answer to have no fields but"),
        ("noul", of_answer(lambda a: a.update(type="choice")), 'expected an answer of type noul, found "choice"'),
        ("noul", of_answer(dict.clear), "expected an answer of type noul, found null"),
        ("noul", lambda r: r.update(answers=[]), "expected answers to be an object, found []"),
        ("noul", lambda r: r["answers"].update(other={}), "expected answers to ['q'], in this order"),
        ("noul", lambda r: r.update(model="gpt"), 'expected model to be toy/Toy-1, as /health says, found "gpt"'),
        ("noul", lambda r: r.pop("usage"), "expected the reply to have usage, found {"),
        (
            "noul",
            lambda r: r["usage"].update(output_tokens=1),
            "expected usage.output_tokens to be an integer from 2",
        ),
        (
            "noul",
            lambda r: r["usage"].update(input_tokens=9.0),
            "expected usage.input_tokens to be an integer from 1",
        ),
        (
            "noul",
            lambda r: r.update(more=1),
            "expected the reply to have no fields but model, answers",
        ),
        ("choice", of_answer(lambda a: a["probabilities"].update(billing=0.999)), "expected probabilities to sum to 1"),
        (
            "choice",
            of_answer(lambda a: a["probabilities"].popitem()),
            "expected probabilities to have exactly",
        ),
        (
            "choice",
            of_answer(lambda a: a["probabilities"].update(x=0.0)),
            "expected probabilities to have exactly",
        ),
        ("choice", of_answer(lambda a: a.update(choice="no such")), "expected choice to be the most probable"),
        ("choice", of_answer(lambda a: a.update(choice=["billing"])), "expected choice to be the most probable"),
        ("choice", of_answer(lambda a: a.update(confidence=-0.1)), "expected confidence to be a number from 0 to 1"),
        ("score", of_answer(lambda a: a.update(score=1.99)), "expected score to be the expectation of its levels"),
        ("score", of_answer(lambda a: a.update(score=7)), "expected score to be a number from 0 to 2, found 7"),
        ("score", of_answer(lambda a: a.update(legend={})), "expected legend to echo the levels, found {}"),
        ("score", of_answer(lambda a: a["probabilities"].update({"3": 0})), "expected probabilities to have exactly"),
    ],
)
async def test_finds_a_wrong_answer(truth, type, change, problem):
    verdict = await verdict_on(truth, altering(type, change), type)

    assert problem in verdict.problem
    assert type == verdict.calls[-1].sent["questions"]["q"]["type"]


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
async def test_finds_a_number_that_is_no_json(truth, literal):
    def lie(heard):
        if heard.path == EVALUATION and heard.status == 200:
            heard.body = heard.body.replace(b'"noul":0', b'"noul":' + literal.encode() + b',"x_rest":0')

    verdict = await verdict_on(truth, lie, "noul")

    assert "POST /v1/systemone: expected JSON, but " in verdict.problem


@pytest.mark.parametrize(
    ("lie", "check", "problem"),
    [
        (lambda h: setattr(h, "body", b"<html>hello</html>"), "noul", "expected JSON, but the body is not JSON"),
        (lambda h: setattr(h, "body", b""), "noul", "expected JSON, but the body is not JSON"),
        (lambda h: setattr(h, "body", b"[" * 100_000), "noul", "expected JSON, but the body is nested too deep"),
        (lambda h: setattr(h, "body", b'{"a": "\\ud800"}'), "noul", "lone surrogate"),
        (lambda h: setattr(h, "body", b"\xff"), "noul", "not valid UTF-8"),
        (lambda h: setattr(h, "body", b"null"), "noul", "expected the reply to be an object, found null"),
        (lambda h: setattr(h, "status", 500), "noul", "expected status 200, found status 500"),
        (lambda h: setattr(h, "status", 204), "noul", "expected status 200, found status 204"),
        (
            lambda h: h.headers.update({"content-type": "text/html"}),
            "noul",
            "expected the content type",
        ),
        (lambda h: h.headers.pop("x-typesafe-request-id"), "noul", "expected a header x-typesafe-request-id"),
        (lambda h: h.headers.pop("x-openjev-prefix-tokens", 0), "noul", "expected a header x-openjev-prefix-tokens"),
        (
            lambda h: h.headers.update({"x-openjev-cached-tokens": "many"}),
            "noul",
            'expected the header x-openjev-cached-tokens to be a count, found "many"',
        ),
        (lambda h: setattr(h, "body", b'{"detail": []}'), "one answer too many is refused", "a non-empty array"),
        (
            lambda h: setattr(h, "status", 200),
            "one answer too many is refused",
            "expected status 422, found",
        ),
        (lambda h: b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhalf", "noul", "RemoteProtocolError"),
        (lambda h: b"garbage\r\n\r\n", "noul", "RemoteProtocolError"),
        (lambda h: b"", "noul", "RemoteProtocolError"),
        (
            lambda h: b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nhalf",
            "noul",
            "DecodingError",
        ),
    ],
)
async def test_finds_a_wrong_reply(truth, lie, check, problem):
    verdict = await verdict_on(truth, lambda heard: lie(heard) if heard.path == EVALUATION else None, check)

    assert problem in verdict.problem


async def test_reads_no_endless_reply(truth):
    def lie(heard):
        if heard.path == EVALUATION:
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
            return (head, *(b"x" * 1_000_000 for _ in range(12)))
        return None

    verdict = await verdict_on(truth, lie, "noul")

    assert "the reply is larger than 8388608 bytes; its beginning is kept" in verdict.problem
    assert len(json.dumps(verdict_as_json(verdict))) < 20_000
    assert 8388608 == len(verdict.calls[-1].body)


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

    by_status = {verdict.name: verdict.status for verdict in report.verdicts}
    assert {"noul": "failed", "choice": "failed", "score": "skipped", "schema": "skipped"}.items() <= by_status.items()
    assert "expected status 200, found no whole reply within 0.4 seconds" in problems(report)["noul"]
    assert not report.passed


async def test_asks_a_busy_server_again(truth):
    def lie(heard):
        if heard.path == EVALUATION and heard.count < 3:
            heard.status = (529, 503, 429)[heard.count]
            heard.headers["retry-after"] = ("0", "0.01", "-5")[heard.count]

    verdict = await verdict_on(truth, lie, "noul")

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

    verdict = await verdict_on(truth, lie, "noul")

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
    assert 503 == report.as_json()["checks"][0]["calls"][0]["status"]


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
    ("body", "problem"),
    [
        (b"starting, please wait", "expected JSON"),
        (b"{}", "expected a field status, found {}"),
        (b'{"status":"ok","startup_seconds":1,"model":null,"backend":{}}', "expected model to be a string, found null"),
        (b'{"status":"ok","startup_seconds":1,"model":"m","backend":{}}', "expected backend to have name, status"),
        (b'{"status":"meh","startup_seconds":1,"model":"m","backend":{}}', 'expected the status ok, found "meh"'),
    ],
)
async def test_knows_another_server_when_it_sees_one(truth, body, problem):
    report = await examine(truth, lambda heard: setattr(heard, "body", body), startup_timeout=30)

    assert problems(report)["ready"].startswith("/health answers, but not as this server: ")
    assert problem in problems(report)["ready"]


@pytest.mark.parametrize(
    ("path", "change", "check", "problem"),
    [
        ("/v1/limits", lambda r: r.pop("max_questions"), "limits", "expected limits to have max_questions"),
        (
            "/v1/limits",
            lambda r: r.update(max_questions=0),
            "limits",
            "max_questions to be an integer from 1",
        ),
        ("/v1/models", lambda r: r.update(models=[]), "models", "expected models to list jev-latest, found []"),
        ("/v1/models", lambda r: r["data"].pop(), "models", "expected data to list toy/Toy-1"),
        ("/v1/models", lambda r: r.update(data=7), "models", "expected data to be an array, found 7"),
        ("/openapi.json", lambda r: r.pop("components"), "schema", "expected the schema to name the question types"),
        (
            "/openapi.json",
            lambda r: r["components"]["schemas"]["Question"]["discriminator"]["mapping"].pop("noul"),
            "schema",
            "expected the schema to name noul, choice and score",
        ),
    ],
)
async def test_finds_wrong_facts(truth, path, change, check, problem):
    def lie(heard):
        if heard.path == path:
            reply = heard.json
            change(reply)
            heard.json = reply

    verdict = await verdict_on(truth, lie, check)

    assert problem in verdict.problem


async def test_a_run_over_a_hung_server_ends(truth):
    began = time.monotonic()
    report = await examine(
        truth, lambda h: hanging(h) if h.path != "/health" else None, call_timeout=0.3, startup_timeout=5
    )

    assert {"failed", "skipped", "passed"} == {verdict.status for verdict in report.verdicts}
    assert time.monotonic() - began < 30
