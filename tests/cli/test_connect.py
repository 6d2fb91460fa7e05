"""``--connect URL`` and ``--engine NAME`` on every command that reads with a model: what is there is found and said."""

from __future__ import annotations

import asyncio
import json
import socket

import httpx
import pytest
from live_server import live_server
from lying_server import lying_server
from openjev_process import serving

QUESTION = {"type": "choice", "criteria": {"a": "First", "b": "Second", "c": "Third"}}
ROWS = [
    {"state": f"State {number}.", "questions": {"q": QUESTION}, "labels": {"q": "abc"[number % 3]}}
    for number in range(60)
]


@pytest.fixture(scope="module")
def service():
    """Another openjev."""
    with live_server() as server:
        yield server.url


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return "data.jsonl"


def ask(run, *flags):
    return run("ask", "--json", "--state", "-", "--noul", "Is it late?", *flags, input="It is midnight.")


def probability(run, *flags):
    result = ask(run, *flags)
    assert 0 == result.exit_code, result.stderr
    (answer,) = json.loads(result.stdout)["answers"].values()
    return answer["noul"], result.stderr


def test_ask_says_what_it_found(openjev, service):
    found, said = probability(openjev, "--connect", service)
    assert f"openjev: connect: found systemone at {service}, by GET /v1/limits\n" in said
    body = {
        "model": "jev-latest",
        "state": "It is midnight.",
        "questions": {"q": {"type": "noul", "instructions": "Is it late?"}},
    }
    expected = httpx.post(f"{service}/v1/systemone", json=body).json()["answers"]["q"]["noul"]
    assert expected == pytest.approx(found, abs=1e-9)


def test_ask_takes_a_server_for_what_it_is_told(openjev, service):
    found, said = probability(openjev, "--connect", service, "--engine", "decisions")
    taken = f"the server at {service} is taken for decisions, because --engine (OPENJEV_ENGINE) says so"
    assert taken in said
    assert probability(openjev, "--connect", service)[0] == pytest.approx(found, abs=1e-9)


def test_a_server_that_is_taken_for_what_it_is_not_is_told(openjev, service):
    result = ask(openjev, "--connect", service, "--engine", "sglang")
    assert 1 == result.exit_code
    assert f"the SGLang at {service} does not report its model" in result.stderr

    def hide(heard):
        heard.status, heard.body = 404, b'{"detail": "Not Found"}'

    with lying_server(service, hide) as url:
        result = ask(openjev, "--connect", url, "--engine", "systemone")
    assert 1 == result.exit_code
    assert f"expected an answer to a first question from the systemone service at {url}, found: " in result.stderr
    assert "answered 404: Not Found" in result.stderr


@pytest.mark.usefixtures("data")
def test_rows_are_answered_measured_and_fitted_to(openjev, service, data, tmp_path):
    asked = openjev("batch", data, "--connect", service, "--run", "batch.jsonl")
    assert 0 == asked.exit_code, asked.stderr
    assert f"connect: found systemone at {service}" in asked.stderr

    fitted = openjev("calibrate", data, "--connect", service, "--orders", "2", "--out", "c.json")
    assert 0 == fitted.exit_code, fitted.stderr
    calibration = json.loads((tmp_path / "c.json").read_text())
    assert ("toy/Toy-1", 2) == (calibration["model"], calibration["orders"])

    flags = ("--connect", service, "--orders", "2", "--no-reorder", "--json", "-")
    plain = openjev("eval", data, *flags, "--run", "plain.jsonl")
    corrected = openjev("eval", data, *flags, "--run", "corrected.jsonl", "--calibration", "c.json")
    losses = [json.loads(run.stdout)["groups"][0]["measures"]["log_loss"]["value"] for run in (plain, corrected)]
    assert losses[1] < losses[0]  # the toy's answers are noise, and a fit to noise takes its certainty away

    other = openjev(
        "eval", data, *flags[:2], "--no-reorder", "--orders", "1", "--calibration", "c.json", "--run", "other.jsonl"
    )
    assert 1 == other.exit_code
    assert "OPENJEV_CALIBRATION: fitted for OPENJEV_ORDERS '2', found '1'" in other.stderr


async def served(service):
    with serving("--connect", service) as child:
        url = await asyncio.to_thread(child.wait_until_it_listens)
        async with httpx.AsyncClient() as client:
            request = {"model": "jev-latest", "state": "x", "questions": {"q": QUESTION}}
            answers = [
                (await client.post(f"{one}/v1/systemone", json=request)).json()["answers"] for one in (url, service)
            ]
            health = (await client.get(f"{url}/health")).json()
        assert 0 == await asyncio.to_thread(child.stop)
    return answers, health, child.log


def test_serve_says_what_it_found_and_answers_as_it_does(service):
    (here, there), health, log = asyncio.run(served(service))
    assert there["q"]["probabilities"] == pytest.approx(here["q"]["probabilities"], abs=1e-9)
    assert {"name": "systemone", "status": "ok"} == health["backend"]
    assert f"connect: found systemone at {service}, by GET /v1/limits" in log
    assert "model toy/Toy-1 on systemone" in log
    assert "Traceback" not in log


def test_nothing_at_the_address_is_told(openjev):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        result = ask(openjev, "--connect", url)
    assert 1 == result.exit_code
    assert f"openjev: connect: expected a server at {url}, found nothing: it cannot be reached" in result.stderr


def test_an_unknown_server_lists_what_was_tried(openjev, service):
    def hide(heard):
        heard.status, heard.body = 200, b"<html>It works!</html>"

    with lying_server(service, hide) as url:
        result = ask(openjev, "--connect", url)
    assert 1 == result.exit_code
    assert "tried GET /props (200), GET /model_info (200)" in result.stderr
    assert "GET /v1/systemone (200), GET /v1/decisions (200)" in result.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--engine", "coin"), "OPENJEV_ENGINE: expected one of llama.cpp, llama-server, "),
        (("--engine", "systemone"), "systemone is a server: give its address with --connect (OPENJEV_CONNECT)"),
        (
            ("--engine", "llama.cpp", "--connect", "http://127.0.0.1:9"),
            "llama.cpp runs in this process and connects to",
        ),
    ],
)
def test_flags_that_make_no_sense_are_exit_code_2(openjev, flags, said):
    result = ask(openjev, *flags)
    assert 2 == result.exit_code
    assert said in result.stderr
