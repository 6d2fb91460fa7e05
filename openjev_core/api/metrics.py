"""Prometheus metrics of one app."""

from __future__ import annotations

import asyncio
import os
from collections import Counter as Counted
from functools import cache
from importlib.metadata import version

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.requests import Request
from starlette.responses import Response

from openjev_core.api.exchange import Exchange
from openjev_core.engine.engine import Engine
from openjev_core.errors import BackendError, OpenJevError, PluginError

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
PREPARE_SECONDS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1)
LABEL_MASS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1)


class Metrics:
    """The counts of what happens in one app, in a registry of their own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        registry = self.registry = CollectorRegistry()
        requests = Counter("openjev_requests", "Answered requests.", ("route", "status"), registry=registry)
        questions = Counter(
            "openjev_questions", "Questions of structured requests.", ("type", "status"), registry=registry
        )
        # Every request needs these. Routes, types and statuses are few, and prometheus_client looks them up slowly.
        self._requests, self._questions = cache(requests.labels), cache(questions.labels)
        self._hang_ups = Counter("openjev_hang_ups", "Clients that left before their answer.", registry=registry)
        self._rejections = Counter(
            "openjev_rejections", "Requests that were refused, by reason.", ("reason",), registry=registry
        )
        self._backend_errors = Counter(
            "openjev_backend_errors", "Evaluations that the backend failed, by kind.", ("kind",), registry=registry
        )
        self._plugin_failures = Counter(
            "openjev_plugin_failures", "Question types that broke their contract.", ("type",), registry=registry
        )
        self._submitted = Counter(
            "openjev_tokens_submitted", "Prompt tokens of warm-ups and branches, cached ones included.",
            registry=registry,
        )  # fmt: skip
        self._cached = Counter(
            "openjev_tokens_cached", "Branches' prompt tokens that the backend had cached.", registry=registry
        )
        self._total = self._histogram("openjev_evaluation_seconds", "A whole evaluation.", SECONDS)
        self._phases = {
            "queue": self._histogram("openjev_queue_seconds", "Waiting for a place.", SECONDS),
            "prepare": self._histogram("openjev_prepare_seconds", "Rendering and tokenizing.", PREPARE_SECONDS),
            "prefill": self._histogram("openjev_prefill_seconds", "Warming the prefix.", SECONDS),
            "branches": self._histogram("openjev_branch_seconds", "Reading all branches.", SECONDS),
        }
        self._label_mass = self._histogram(
            "openjev_label_mass", "Probability that the labels held, an answer's mean over its reads.", LABEL_MASS
        )
        self._in_flight = self._gauge("openjev_evaluations_in_flight", "Evaluations that run now.")
        self._waiting = self._gauge("openjev_evaluations_waiting", "Evaluations that wait for a place.")
        self._reading = self._gauge("openjev_branches_in_flight", "Branches that are being read now.")
        self._tasks = self._gauge("openjev_tasks", "Tasks on the event loop: when idle, as many as at the start.")
        build = Gauge(
            "openjev_build_info", "Always 1; what runs is in the labels.", ("version", "model", "backend"),
            registry=registry, multiprocess_mode="max",
        )  # fmt: skip
        build.labels(version("openjev"), engine.model.public_name, engine.model.engine).set(1)
        ProcessCollector(registry=registry)

    def _histogram(self, name: str, documentation: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, documentation, buckets=buckets, registry=self.registry)

    def _gauge(self, name: str, documentation: str) -> Gauge:
        return Gauge(name, documentation, registry=self.registry, multiprocess_mode="livesum")

    def _observe_load(self) -> None:
        self._in_flight.set(self._engine.in_flight)
        self._waiting.set(self._engine.waiting)
        self._reading.set(self._engine.branches_in_flight)

    def observe(self, exchange: Exchange) -> None:
        """Count a request that has ended."""
        self._observe_load()
        if exchange.hung_up or exchange.status is None:
            self._hang_ups.inc()
            return
        status = str(exchange.status)
        self._requests(exchange.route, status).inc()
        for name, count in Counted(exchange.questions.values()).items():
            self._questions(name, status).inc(count)
        if (evaluation := exchange.evaluation) is not None:
            self._submitted.inc(evaluation.usage.input_tokens)
            self._cached.inc(evaluation.usage.cached_tokens or 0)
            phases = evaluation.timings.phases
            self._total.observe(sum(seconds for _, seconds in phases))
            for name, seconds in phases:
                self._phases[name].observe(seconds)
            for answer in evaluation.answers.values():
                if (mass := answer.get("x_label_mass")) is not None:
                    self._label_mass.observe(mass)
            for question_id in evaluation.failures:
                self._plugin_failures.labels(exchange.questions[question_id]).inc()
        if exchange.error is not None:
            self._count_error(exchange.error)

    def _count_error(self, error: Exception) -> None:
        if isinstance(error, PluginError):
            self._plugin_failures.labels(error.type_name).inc()
        elif isinstance(error, BackendError):
            self._backend_errors.labels(error.error_type).inc()
        elif isinstance(error, OpenJevError):
            self._rejections.labels(error.error_type).inc()

    async def response(self, _request: Request) -> Response:
        """``GET /metrics``: the metrics as Prometheus reads them, of all workers where there are several."""
        self._observe_load()
        self._tasks.set(len(asyncio.all_tasks()))
        registry = self.registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return Response(generate_latest(registry), headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})
