"""An evaluation over HTTP: its headers, its limits, its end when the client or the backend goes."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx
import pytest
from attrs import field, frozen
from live_server import live_server
from raw_http import connection, exchange, post, request
from starlette.testclient import TestClient
from toy_model import ToyBackend, toy_model
from until import eventually

from openjev_core.api.app import create_app
from openjev_core.errors import BackendError, BackendUnavailable
from openjev_core.plugins.registry import load_registry, registry_of
from openjev_core.question import QuestionType
from openjev_core.settings import Settings
from openjev_core.testing.scripted import engine_on

REQUEST = json.loads(request())


def test_the_answer_comes_with_its_headers(server):
    reply = httpx.post(server.url + "/v1/systemone", json=REQUEST)
    assert 200 == reply.status_code
    assert ["model", "answers", "usage"] == list(reply.json())
    assert "toy/Toy-1" == reply.headers["x-openjev-model"]
    prefix = int(reply.headers["x-openjev-prefix-tokens"])
    assert prefix > 0
    assert prefix == int(reply.headers["x-openjev-cached-tokens"])
    phases = [part.split(";dur=") for part in reply.headers["server-timing"].split(", ")]
    assert ["queue", "prepare", "prefill", "branches"] == [name for name, _ in phases]
    assert all(float(milliseconds) >= 0 for _, milliseconds in phases)
    assert 2 == reply.json()["usage"]["output_tokens"]


def test_answers_are_in_request_order(server):
    ids = ["z", "10", "1", "a", " ", "é"]
    questions = dict.fromkeys(ids, REQUEST["questions"]["q"])
    reply = httpx.post(server.url + "/v1/systemone", json={**REQUEST, "questions": questions})
    assert ids == list(reply.json()["answers"])


@pytest.fixture
def slow():
    backend = ToyBackend(seconds=30.0)
    with live_server(backend=backend, max_concurrent_requests=2, request_timeout=60.0) as running:
        yield running
        backend.seconds = 0.0


def test_a_hang_up_cancels_the_evaluation_and_frees_its_place(slow):
    with connection(slow) as sock:
        sock.sendall(post(request()))
        assert eventually(lambda: slow.backend.running == 1)
        assert 1 == slow.engine.in_flight
    assert eventually(lambda: slow.engine.in_flight == 0)
    assert 1 == slow.backend.cancelled
    assert 0 == len(slow.app.state.running)
    metrics = httpx.get(slow.url + "/metrics").text
    assert "openjev_hang_ups_total 1.0" in metrics
    assert 'status="499"' not in metrics


def test_a_hang_up_and_a_stop_end_an_evaluation_whose_questions_are_still_read():
    go_on = threading.Event()

    @frozen(kw_only=True)
    class Slow:
        text: str = field(validator=lambda *_: go_on.wait(20))

    slow_type = QuestionType(
        name="slow",
        summary="Takes its time.",
        api=1,
        question=Slow,
        answer=Slow,
        readouts=lambda question: [],
        reduce=lambda question, found: question,
    )
    ask = post(request(q={"type": "slow", "text": "x"}))
    with ThreadPoolExecutor(1) as pool:
        with live_server(registry=registry_of(slow_type), grace_period=0.1) as running:
            with connection(running) as sock:
                sock.sendall(ask)
                assert eventually(lambda: running.engine.in_flight == 1)
            assert eventually(lambda: running.engine.in_flight == 0)
            last = pool.submit(exchange, running, ask)
            assert eventually(lambda: running.engine.in_flight == 1)
        assert "stopping" == last.result().json["detail"]["error_type"]
    go_on.set()


def test_a_hang_up_of_one_leaves_the_others_alone(slow):
    slow.backend.seconds = 1.0
    with ThreadPoolExecutor(1) as pool, connection(slow) as sock:
        other = pool.submit(httpx.post, slow.url + "/v1/systemone", json=REQUEST, timeout=20)
        sock.sendall(post(request()))
        assert eventually(lambda: slow.backend.running == 2)
        sock.close()
        assert 200 == other.result().status_code
    assert 1 == slow.backend.cancelled


def test_over_capacity_is_a_529_that_says_when_to_try_again(slow):
    with connection(slow) as one, connection(slow) as two:
        one.sendall(post(request()))
        two.sendall(post(request()))
        assert eventually(lambda: slow.engine.in_flight == 2)
        reply = exchange(slow, post(request()))
        assert 529 == reply.status
        assert "at_capacity" == reply.json["detail"]["error_type"]
        assert int(reply.headers["retry-after"]) >= 1
        assert 529 == exchange(slow, post(b"{}")).status  # structuring takes a place as well
    assert eventually(lambda: slow.engine.in_flight == 0)
    slow.backend.seconds = 0.0
    assert 200 == exchange(slow, post(request())).status


def test_an_evaluation_that_takes_too_long_is_a_504():
    with live_server(backend=ToyBackend(seconds=30.0), request_timeout=0.2) as running:
        reply = exchange(running, post(request()))
    assert 504 == reply.status
    assert "deadline_exceeded" == reply.json["detail"]["error_type"]


@pytest.mark.parametrize(
    ("error", "status", "kind", "retry_after"),
    [
        (BackendError("nonsense"), 502, "backend_error", None),
        (BackendUnavailable("gone"), 503, "backend_unavailable", "2"),
        (RuntimeError("a secret of the state"), 502, "backend_error", None),
    ],
)
def test_a_failing_backend_is_reported(error, status, kind, retry_after, caplog):
    with live_server(backend=ToyBackend(error=error)) as running:
        reply = exchange(running, post(request()))
        metrics = httpx.get(running.url + "/metrics").text
    assert status == reply.status
    assert kind == reply.json["detail"]["error_type"]
    assert retry_after == reply.headers.get("retry-after")
    assert "secret" not in reply.body.decode() + caplog.text
    assert "gone" not in reply.body.decode()  # where the backend is, and how it failed, is for the log
    assert f'openjev_requests_total{{route="/v1/systemone",status="{status}"}} 1.0' in metrics
    if status < 500 or status > 501:
        assert f'openjev_backend_errors_total{{kind="{kind}"}} 1.0' in metrics
    else:
        assert "RuntimeError at scripted_backend.py" in caplog.text
        assert reply.headers["x-typesafe-request-id"] in reply.json["detail"]["message"]


def test_health_tells_whether_the_backend_answers():
    backend = ToyBackend()
    with live_server(backend=backend) as running:
        well = httpx.get(running.url + "/health")
        live = httpx.get(running.url + "/health/live")
    backend = ToyBackend(error=BackendUnavailable("gone"))
    with live_server(backend=backend) as running:
        unwell = httpx.get(running.url + "/health")
        still_live = httpx.get(running.url + "/health/live")
    assert (200, "ok") == (well.status_code, well.json()["status"])
    assert {"name": "toy", "status": "ok"} == well.json()["backend"]
    assert (503, "unavailable") == (unwell.status_code, unwell.json()["status"])
    assert {"name": "toy", "status": "unavailable"} == unwell.json()["backend"]
    assert "retry-after" in unwell.headers
    assert (200, 200) == (live.status_code, still_live.status_code)


def test_models_are_told_in_both_shapes(server):
    body = httpx.get(server.url + "/v1/models").json()
    assert ["jev-latest", "toy/Toy-1"] == [model["name"] for model in body["models"]]
    assert [{"name", "description", "release_date"}] * 2 == [set(model) for model in body["models"]]
    assert "list" == body["object"]
    assert {"id": "toy/Toy-1", "object": "model", "owned_by": "openjev"} == body["data"][1]


def released(**fields):
    engine = engine_on(toy_model(**fields), Settings(), load_registry())
    (_, own) = TestClient(create_app(engine)).get("/v1/models").json()["models"]
    return own["release_date"], own["description"]


def test_a_date_that_is_not_known_is_told_as_what_it_is():
    assert ("2024-11-01", "toy/Toy-1 on toy") == released(release_date="2024-11-01")
    before = datetime.now(UTC).date().isoformat()
    date, description = released()
    assert before <= date <= datetime.now(UTC).date().isoformat()
    assert description.endswith("; the date is that of this server's start, the model's own is not known")


def test_limits_are_the_ones_in_force(server):
    assert {
        "max_questions": 64,
        "max_answers_per_question": 64,
        "max_body_bytes": 1024 * 1024,
        "max_input_tokens": 32768,
        "max_total_input_tokens": 262144,
        "max_concurrent_requests": 16,
        "max_concurrent_branches": 64,
    } == httpx.get(server.url + "/v1/limits").json()


def test_prompts_are_shown_without_inference(server):
    reply = httpx.post(server.url + "/v1/prompts", json=REQUEST)
    body = reply.json()
    assert 200 == reply.status_code
    assert body["prefix"].endswith("Question:")
    assert ["q"] == [branch["question_id"] for branch in body["branches"]]
    assert body["prefix"] == "".join(token["text"] for token in body["prefix_tokens"])


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({}, 200),
        ({"debug_prompts": False}, 404),
        ({"host": "0.0.0.0"}, 404),
        ({"host": "0.0.0.0", "debug_prompts": True}, 200),
    ],
)
def test_prompts_are_served_on_loopback_only_unless_configured(settings, status):
    with live_server(**settings) as running:
        assert status == httpx.post(f"http://127.0.0.1:{running.port}/v1/prompts", json=REQUEST).status_code


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/decisions"])
def test_a_burst_waits_for_its_places(path):
    ask = {"model": "jev-latest", "state": "x", "questions": REQUEST["questions"]}
    if path == "/v1/decisions":
        ask = {"model": "jev-latest", "input": "x", "questions": [{"type": "predicate", "instructions": "So?"}]}
    with live_server(backend=ToyBackend(seconds=0.02), max_concurrent_requests=2) as running:
        assert 200 == httpx.post(running.url + path, json=ask).status_code
        with ThreadPoolExecutor(8) as clients:
            replies = list(clients.map(lambda _: httpx.post(running.url + path, json=ask, timeout=30), range(8)))
    assert [200] * 8 == [reply.status_code for reply in replies]
