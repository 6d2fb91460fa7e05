"""The names of the one model, and paths one level off."""

from __future__ import annotations

import json

import httpx
import openai
import pytest
from live_server import live_server
from raw_http import request


def body(**fields):
    return json.dumps({**json.loads(request()), **fields}).encode()


@pytest.fixture(scope="module")
def named():
    with live_server(served_model_name=("toy/Toy-1", "gpt-6-luna")) as running:
        yield running


def test_every_served_name_is_listed_and_taken(named):
    listed = httpx.get(named.url + "/v1/models").json()
    assert ["jev-latest", "toy/Toy-1", "gpt-6-luna"] == [model["id"] for model in listed["data"]]
    assert ["jev-latest", "toy/Toy-1", "gpt-6-luna"] == [model["name"] for model in listed["models"]]
    for name in ("jev-latest", "jev-1.14.0", "toy/Toy-1", "gpt-6-luna"):
        reply = httpx.post(named.url + "/v1/systemone", content=body(model=name))
        assert (200, "toy/Toy-1") == (reply.status_code, reply.json()["model"])
    refused = httpx.post(named.url + "/v1/systemone", content=body(model="gpt-5"))
    assert 422 == refused.status_code
    assert "served: 'toy/Toy-1', 'gpt-6-luna'" in refused.json()["detail"][0]["msg"]


def test_one_model_is_found_by_name(named):
    client = openai.OpenAI(base_url=named.url + "/v1", api_key="any")
    for name in ("jev-latest", "jev-1.14.0", "toy/Toy-1", "gpt-6-luna"):
        assert name == client.models.retrieve(name).id
    assert 3 == len(client.models.list().data)
    with pytest.raises(openai.NotFoundError, match="there is no model 'gpt-5'; served: jev-latest, toy/Toy-1"):
        client.models.retrieve("gpt-5")


def test_models_have_one_label_in_the_metrics(named):
    httpx.get(named.url + "/v1/models/a")
    httpx.get(named.url + "/v1/models/b")
    metrics = httpx.get(named.url + "/metrics").text
    assert 'openjev_requests_total{route="/v1/models/{id}",status="404"}' in metrics
    assert "/v1/models/a" not in metrics


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/systemone", "/v1/systemone"),
        ("/v1/v1/systemone", "/v1/systemone"),
        ("/decisions", "/v1/decisions"),
        ("/v1/v1/models/", "/v1/models"),
        ("/V1/SystemOne", "/v1/systemone"),
        ("//v1/systemone", "/v1/systemone"),
        ("/health/", "/health"),
        ("/healthz", "/health"),
        ("/readyz", "/health"),
        ("/livez", "/health/live"),
        ("/metrics/", "/metrics"),
    ],
)
def test_a_path_one_level_off_is_told_the_route(named, path, meant):
    reply = httpx.post(named.url + path, content=request())
    assert 404 == reply.status_code
    assert f"did you mean {meant}? GET / lists them" in reply.json()["detail"]["message"]


def test_other_paths_are_told_nothing(named):
    reply = httpx.get(named.url + "/else")
    assert "there is no route '/else'; GET / lists them" == reply.json()["detail"]["message"]
    assert reply.json()["detail"]["message"] == reply.json()["error"]["message"]


def test_errors_have_openai_s_shape_beside_the_contract_s(named):
    reply = httpx.post(named.url + "/v1/systemone", content=request(q={"type": "noul", "wrong": 1}))
    assert 422 == reply.status_code
    body = reply.json()
    assert ["detail", "error"] == list(body)
    assert ("invalid_request_error", "questions.q.wrong") == (body["error"]["type"], body["error"]["param"])
    assert reply.headers["x-request-id"] == reply.headers["x-typesafe-request-id"]


@pytest.mark.parametrize("field", ["assets", "images", "audio", "videos"])
def test_media_are_refused_by_name(named, field):
    headers = {"TypeSafe-Danger-Zone-Images": "true"}
    reply = httpx.post(named.url + "/v1/systemone", content=body(**{field: {"a": 1}}), headers=headers)
    (problem,) = reply.json()["detail"]
    assert (422, ["body", field], "unsupported_content") == (reply.status_code, problem["loc"], problem["type"])
    assert 200 == httpx.post(named.url + "/v1/systemone", content=body(**{field: None})).status_code


def test_null_extensions_count_as_absent(named):
    plain = httpx.post(named.url + "/v1/systemone", content=request()).json()
    assert plain == httpx.post(named.url + "/v1/systemone", content=body(x_orders=None, x_partial=None)).json()
    assert plain["usage"]["cached_tokens"] > 0
