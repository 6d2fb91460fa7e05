"""The double's routes for whoever operates it, and those for tests in another process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from sglang_double_faults import Fault
from sglang_double_http import HttpRequest
from sglang_double_model import PrefixTree
from sglang_double_scheduler import abort_job

if TYPE_CHECKING:
    from sglang_double import SGLangDouble


def abort_request(double: SGLangDouble, request: HttpRequest) -> None:
    """``POST /abort_request``: by the beginning of a rid, if that very rid is known."""
    body = orjson.loads(request.body or b"{}")
    rid = body.get("rid", "")
    double.aborts.append(rid)
    if rid in double.jobs or body.get("abort_all"):
        for job in [job for job in double.jobs.values() if job.rid.startswith(rid)]:
            abort_job(double, job)
    request.answer(200, b"", None)


def flush_cache(double: SGLangDouble, request: HttpRequest) -> None:
    """``POST /flush_cache``."""
    if not double.idle:
        request.answer(400, b"Flush cache failed.\n", None)
        return
    double.tree, double.tree_tokens = PrefixTree(), 0
    request.answer(200, b"Cache flushed.\n", None)


def add_fault(double: SGLangDouble, request: HttpRequest) -> None:
    """``POST /double/fault``: a :class:`Fault` as JSON."""
    double.faults.append(Fault(**orjson.loads(request.body)))
    request.answer(200, b"{}")


def report(double: SGLangDouble, request: HttpRequest) -> None:
    """``GET /double/report``: what a test of another process wants to know."""
    answer = {
        "violations": double.rules.violations,
        "completed": double.completed,
        "aborted": double.aborted,
        "computed_tokens": double.computed_tokens,
        "in_flight": len(double.jobs),
        "connections": len(double.connections),
    }
    request.answer(200, orjson.dumps(answer))
