"""OpenTelemetry traces of the requests, for those who install the extra ``otel`` and switch it on."""

from __future__ import annotations

import time
from typing import Any, Protocol

from openjev_core.api.exchange import Exchange, joined
from openjev_core.errors import StartupError
from openjev_core.settings import Settings


class Exporter(Protocol):
    """The part of an OpenTelemetry tracer provider that is used here."""

    def get_tracer(self, instrumenting_module_name: str) -> Any:
        """A tracer."""
        ...


class Tracing:
    """Records each request as a span, with its phases as children. The standard ``OTEL_*`` variables say whereto.

    Args:
        provider: Makes and exports the spans; ``None`` records nothing.
    """

    def __init__(self, provider: Exporter | None) -> None:
        self._tracer = None if provider is None else provider.get_tracer("openjev")

    @classmethod
    def from_settings(cls, settings: Settings) -> Tracing:
        """Tracing as configured.

        Raises:
            StartupError: It is switched on and the extra is not installed.
        """
        if not settings.tracing:
            return cls(None)
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
            from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        except ImportError as error:  # the extra `otel` is optional
            raise StartupError(
                "OPENJEV_TRACING is on, but OpenTelemetry is not installed; install openjev[otel]"
            ) from error
        provider = TracerProvider(resource=Resource.create({"service.name": "openjev"}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    def record(self, exchange: Exchange) -> None:
        """Record a request that has ended."""
        if self._tracer is None:
            return
        from opentelemetry.propagate import extract  # noqa: PLC0415 - there only where tracing is on
        from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context  # noqa: PLC0415

        ended = time.time_ns()
        started = ended - int((time.perf_counter() - exchange.started) * 1e9)
        carrier = {
            name: joined(exchange.headers, name) for name in ("traceparent", "tracestate") if name in exchange.headers
        }
        span = self._tracer.start_span(
            f"{exchange.method[:20]} {exchange.route}",
            context=extract(carrier),
            kind=SpanKind.SERVER,
            start_time=started,
            attributes=attributes_of(exchange),
        )
        if exchange.status is None:
            span.set_status(Status(StatusCode.UNSET, "the client hung up"))
        elif exchange.status >= 500:  # noqa: PLR2004 - server errors, as OpenTelemetry's HTTP conventions say
            span.set_status(Status(StatusCode.ERROR, type(exchange.error).__name__))
        if (evaluation := exchange.evaluation) is not None:
            phases = evaluation.timings.phases
            # The phases follow one another and the reply follows them at once.
            start = ended - int(sum(seconds for _, seconds in phases) * 1e9)
            for name, seconds in phases:
                end = start + int(seconds * 1e9)
                self._tracer.start_span(name, context=set_span_in_context(span), start_time=start).end(end)
                start = end
        span.end(ended)


def attributes_of(exchange: Exchange) -> dict[str, Any]:
    """A request's attributes, named by OpenTelemetry's HTTP conventions where these have a name."""
    attributes: dict[str, Any] = {
        "http.request.method": exchange.method[:20],
        "http.route": exchange.route,
        "client.address": exchange.client,
        "openjev.request_id": exchange.request_id,
        "openjev.questions": len(exchange.questions),
    }
    if exchange.status is not None:
        attributes["http.response.status_code"] = exchange.status
    if (evaluation := exchange.evaluation) is not None:
        attributes["openjev.input_tokens"] = evaluation.usage.input_tokens
        attributes["openjev.branches"] = evaluation.usage.branches
        if evaluation.usage.cached_tokens is not None:
            attributes["openjev.cached_tokens"] = evaluation.usage.cached_tokens
    return attributes
