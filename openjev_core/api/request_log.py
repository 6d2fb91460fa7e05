"""One line per request: what happened and how long it took; never a state, an instruction or a key."""

from __future__ import annotations

import logging
import time
import traceback
from collections import Counter
from http import HTTPStatus
from typing import Any, Literal

import orjson

from openjev_core.api.exchange import Exchange
from openjev_core.errors import OpenJevError, RequestError

REQUESTS = "openjev.requests"
"""Name of the logger that gets the lines."""

QUIET_ROUTES = frozenset({"/health", "/health/live", "/metrics"})
"""Polled by machines; logged at debug level unless they fail."""


class RequestLog:
    """Writes the lines.

    Args:
        style: ``text`` for people, ``json`` for machines.
    """

    def __init__(self, style: Literal["text", "json"]) -> None:
        self._logger = logging.getLogger(REQUESTS)
        self._write = json_line if style == "json" else text_line

    def write(self, exchange: Exchange) -> None:
        """Log a request that has ended."""
        level = level_of(exchange)
        if self._logger.isEnabledFor(level):
            # Made here: `Logger.log` would look for its caller through dozens of frames, 2% of a request's CPU.
            line = self._write(record_of(exchange))
            self._logger.handle(self._logger.makeRecord(REQUESTS, level, __file__, 0, line, (), None))


def level_of(exchange: Exchange) -> int:
    """The level at which a request is logged."""
    if exchange.status is not None and exchange.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        # 503 and 529 are signs of load, which is no fault of this server.
        return logging.ERROR if exchange.status == HTTPStatus.INTERNAL_SERVER_ERROR else logging.WARNING
    return logging.DEBUG if exchange.route in QUIET_ROUTES else logging.INFO


def record_of(exchange: Exchange) -> dict[str, Any]:
    """A request as a log record. Everything in it is the server's own, or is made harmless where a line is written."""
    record: dict[str, Any] = {
        "request_id": exchange.request_id,
        "client": exchange.client,
        "method": exchange.method[:20],
        "path": exchange.path[:200],
        "status": exchange.status,
        "seconds": round(time.perf_counter() - exchange.started, 6),
    }
    if exchange.hung_up:
        record["hung_up"] = True
    if exchange.questions:
        record["questions"] = dict(Counter(exchange.questions.values()))
    if (evaluation := exchange.evaluation) is not None:
        record["input_tokens"] = evaluation.usage.input_tokens
        record["cached_tokens"] = evaluation.usage.cached_tokens
        record |= {name: round(seconds, 6) for name, seconds in evaluation.timings.phases}
    if exchange.error is not None:
        record["error"] = error_text(exchange.error)
    return record


def error_text(error: Exception) -> str:
    """What went wrong, without anything that the request held.

    A problem's message may quote the request, and so may an exception that is not openjev's own: of these the log
    names the kind and the place.
    """
    if isinstance(error, RequestError):
        places = [".".join(str(part) for part in p.loc[:1]) + f" {p.type}" for p in error.problems[:3]]
        return "; ".join(place.strip() for place in places)
    if not isinstance(error, OpenJevError):
        return f"{type(error).__name__} at {place_of(error)}"
    if error.__cause__ is not None:
        return f"{error} ({type(error.__cause__).__name__} at {place_of(error.__cause__)})"
    return str(error)


def place_of(error: BaseException) -> str:
    """The lines of code that an exception passed through, innermost first."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    return " < ".join(f"{f.filename.rsplit('/', 1)[-1]}:{f.lineno} {f.name}" for f in reversed(frames)) or "unknown"


def json_line(record: dict[str, Any]) -> str:
    """The record as JSON."""
    return orjson.dumps(record).decode()


def text_line(record: dict[str, Any]) -> str:
    """The record as a line for people."""
    status = record["status"]
    outcome = "client hung up" if record.get("hung_up") else f"{status} {phrase(status)}"
    parts = [f'{record["client"]} "{visible(record["method"])} {visible(record["path"])}" {outcome}']
    if questions := record.get("questions"):
        parts.append(", ".join(f"{count} {name}" for name, count in questions.items()))
    if "input_tokens" in record:
        cached = record["cached_tokens"]
        parts.append(f"{record['input_tokens']} tokens" + (f" ({cached} cached)" if cached is not None else ""))
    parts.append(f"{record['seconds'] * 1000:.1f} ms")
    if "prepare" in record:
        parts[-1] += " ({})".format(
            ", ".join(f"{n} {record[n] * 1000:.1f}" for n in ("queue", "prepare", "prefill", "branches"))
        )
    if "error" in record:
        parts.append(visible(record["error"]))
    return " · ".join([*parts, record["request_id"]])


def phrase(status: int | None) -> str:
    """A status code in words."""
    try:
        return HTTPStatus(status or 0).phrase
    except ValueError:
        return "At Capacity" if status == 529 else ""  # noqa: PLR2004 - not in the standard library's list


def visible(text: str) -> str:
    """``text`` with what could break a line spelled out."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
