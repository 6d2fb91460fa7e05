"""The request log: one line per request, readable or JSON, and nothing of what a request held."""

from __future__ import annotations

import json
import logging

import httpx
import pytest
from live_server import live_server
from raw_http import exchange, post, request

SECRETS = ["the state is secret", "secret instructions", "secret option", "secret description", "secret-id"]
SECRET = json.dumps(
    {
        "model": "jev-latest",
        "state": SECRETS[0],
        "questions": {
            SECRETS[4]: {"type": "choice", "instructions": SECRETS[1], "criteria": {SECRETS[2]: SECRETS[3], "b": None}}
        },
    }
).encode()


def lines(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "openjev.requests"]


@pytest.mark.parametrize("style", ["text", "json"])
def test_nothing_of_a_request_is_logged(style, caplog):
    caplog.set_level(logging.DEBUG)
    wrong = SECRET.replace(b'"b": null', b'"b": 1')
    with live_server(log_format=style) as running:
        bodies = [SECRET, wrong, SECRET[:-3], SECRET.replace(b"jev-latest", b"secret model")]
        replies = [exchange(running, post(body)) for body in bodies]
    assert [200, 422, 422, 422] == [reply.status for reply in replies]
    for reply in replies:
        assert 1 == sum(reply.headers["x-typesafe-request-id"] in line for line in lines(caplog))
    assert [] == [secret for secret in [*SECRETS, "secret model"] if secret in caplog.text]


def test_a_line_of_text_tells_what_happened(caplog):
    caplog.set_level(logging.INFO)
    with live_server() as running:
        reply = exchange(
            running, post(request(a={"type": "noul", "instructions": "x"}, b={"type": "noul", "instructions": "y"}))
        )
    (line,) = lines(caplog)
    assert line.startswith('127.0.0.1 "POST /v1/systemone" 200 OK · 2 noul · ')
    assert " cached)" in line
    assert "prepare" in line
    assert line.endswith(reply.headers["x-typesafe-request-id"])


def test_a_line_of_json_tells_the_same(caplog):
    caplog.set_level(logging.INFO)
    with live_server(log_format="json") as running:
        reply = exchange(running, post(request()))
        exchange(running, post(b"{}"))
    good, bad = [json.loads(line) for line in lines(caplog)]
    assert reply.headers["x-typesafe-request-id"] == good["request_id"]
    assert ("POST", "/v1/systemone", 200, {"noul": 1}) == tuple(
        good[k] for k in ("method", "path", "status", "questions")
    )
    assert good["input_tokens"] > 0
    assert {"seconds", "queue", "prepare", "prefill", "branches", "cached_tokens", "client"} <= set(good)
    assert (422, "model missing; state missing; questions missing") == (bad["status"], bad["error"])


@pytest.mark.parametrize("path", ["/%0aINFO%20forged", "/%1b[31mred", "/%e2%80%a8", "/" + "a" * 5000])
def test_a_path_cannot_forge_or_flood_the_log(path, caplog):
    caplog.set_level(logging.INFO)
    with live_server() as running:
        exchange(running, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    (line,) = lines(caplog)
    assert line.isprintable()
    assert len(line) < 1000


def test_polled_routes_are_quiet(caplog):
    caplog.set_level(logging.INFO)
    with live_server() as running:
        for path in ("/health", "/health/live", "/metrics"):
            httpx.get(running.url + path)
    assert [] == lines(caplog)
