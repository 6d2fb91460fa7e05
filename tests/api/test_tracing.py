"""OpenTelemetry traces: one span per request, its phases below it, nothing of what it held."""

from __future__ import annotations

import sys

import pytest
from live_server import live_server
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from raw_http import exchange, post, request

from openjev_core.api.tracing import Tracing
from openjev_core.errors import StartupError
from openjev_core.settings import Settings


@pytest.fixture
def traced():
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    with live_server(tracing=Tracing(provider)) as running:
        yield running, spans


def spans_by_name(running, spans):
    exchange(running, b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")  # answered after the spans before it are made
    return {span.name: span for span in spans.get_finished_spans() if not span.name.startswith("GET")}


def test_an_evaluation_is_a_span_with_its_phases(traced):
    running, spans = traced
    reply = exchange(running, post(request(state="the secret state")))
    finished = spans_by_name(running, spans)
    assert {"POST /v1/systemone", "queue", "prepare", "prefill", "branches"} == set(finished)
    whole = finished["POST /v1/systemone"]
    assert 200 == whole.attributes["http.response.status_code"]
    assert reply.headers["x-typesafe-request-id"] == whole.attributes["openjev.request_id"]
    assert reply.json["usage"]["input_tokens"] == whole.attributes["openjev.input_tokens"]
    assert {whole.context.span_id} == {
        finished[name].parent.span_id for name in ("queue", "prepare", "prefill", "branches")
    }
    assert whole.start_time <= finished["prepare"].start_time
    assert finished["prepare"].end_time == finished["prefill"].start_time
    assert finished["branches"].end_time <= whole.end_time
    assert "secret" not in "".join(span.to_json() for span in finished.values())


def test_it_joins_the_callers_trace(traced):
    running, spans = traced
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    exchange(running, post(request(), headers=[f"traceparent: 00-{trace}-{parent}-01"]))
    whole = spans_by_name(running, spans)["POST /v1/systemone"]
    assert trace == f"{whole.context.trace_id:032x}"
    assert parent == f"{whole.parent.span_id:016x}"


@pytest.mark.parametrize("header", ["", "nonsense", "00-zz-yy-01", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
def test_a_wrong_traceparent_starts_a_trace_of_its_own(traced, header):
    running, spans = traced
    assert 200 == exchange(running, post(request(), headers=[f"traceparent: {header}"])).status
    whole = spans_by_name(running, spans)["POST /v1/systemone"]
    assert whole.parent is None


def test_switched_on_without_the_extra_the_start_fails_with_the_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(StartupError, match=r"install openjev\[otel\]"):
        Tracing.from_settings(Settings(tracing=True))


def test_switched_off_it_does_nothing():
    assert Tracing.from_settings(Settings())._tracer is None
