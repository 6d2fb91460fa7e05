"""Metrics of one app, as Prometheus reads them."""

from __future__ import annotations

import json

import httpx
import pytest
from live_server import live_server
from prometheus_client.parser import text_string_to_metric_families
from raw_http import exchange, post, request


def samples(server):
    text = httpx.get(server.url + "/metrics").text
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def counted():
    with live_server() as running:
        yield running


def test_an_evaluation_is_counted(counted):
    questions = {
        "a": {"type": "noul", "instructions": "x"},
        "b": {"type": "noul", "instructions": "y"},
        "c": {"type": "score", "criteria": ["low", "high"]},
    }
    reply = exchange(counted, post(request(**questions)))
    found = samples(counted)
    assert 1 == found["openjev_requests_total", "/v1/systemone", "200"]
    assert 2 == found["openjev_questions_total", "200", "noul"]
    assert 1 == found["openjev_questions_total", "200", "score"]
    assert reply.json["usage"]["input_tokens"] == found["openjev_tokens_submitted_total",]
    assert int(reply.headers["x-openjev-cached-tokens"]) == found["openjev_tokens_cached_total",]
    for name in ("evaluation", "queue", "prepare", "prefill", "branch"):
        assert 1 == found[f"openjev_{name}_seconds_count",]
    assert 0 == found["openjev_evaluations_in_flight",]
    assert 0 == found["openjev_branches_in_flight",]
    assert 1 == found["openjev_build_info", "0.1.0", "toy", "toy/Toy-1"]


def test_rejections_are_counted_by_reason(counted):
    exchange(counted, post(b"{}"))
    exchange(counted, post(b"{}", headers=["Content-Encoding: br"]))
    exchange(counted, post(b"{}", path="/nowhere"))
    exchange(counted, post(b"{}", path="/elsewhere"))
    found = samples(counted)
    assert 1 == found["openjev_rejections_total", "validation_error"]
    assert 1 == found["openjev_rejections_total", "unsupported_body"]
    assert 2 == found["openjev_rejections_total", "not_found"]
    assert 2 == found["openjev_requests_total", "404", "other"]


def test_two_apps_count_apart(counted):
    with live_server() as other:
        exchange(other, post(request()))
        assert 1 == samples(other)["openjev_requests_total", "/v1/systemone", "200"]
    assert ("openjev_requests_total", "/v1/systemone", "200") not in samples(counted)


def test_the_dashboard_asks_for_metrics_that_exist(counted, pytestconfig):
    exchange(counted, post(request()))
    exchange(counted, post(b"{}"))
    exported = {name for name, *_ in samples(counted)}
    exported |= {"openjev_backend_errors_total", "openjev_plugin_failures_total"}
    dashboard = json.loads((pytestconfig.rootpath / "examples" / "grafana-dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    asked = {word for query in queries for word in query.replace("(", " ").replace("{", " ").replace("[", " ").split()}
    asked = {word.strip(",)") for word in asked if word.startswith("openjev_")}
    assert asked
    assert set() == asked - exported
