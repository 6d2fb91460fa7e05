"""The double's routes beside ``/generate``: its pages about itself, those of an operator, and those of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from sglang_double_answers import SLACK
from sglang_double_faults import Fault
from sglang_double_http import HttpRequest
from sglang_double_model import PrefixTree
from sglang_double_scheduler import abort_job

if TYPE_CHECKING:
    from sglang_double import SGLangDouble


def health(double: SGLangDouble, request: HttpRequest) -> None:
    """``GET /health``: the Rust front end says that it is well before its own first call has ended."""
    double.health_checks += 1
    request.answer(503 if double.starting and double.frontend == "python" else 200, b"", None)


def model_info(double: SGLangDouble, request: HttpRequest) -> None:
    """``GET /model_info``."""
    answer = {
        "model_path": double.model_path,
        "served_model_name": double.served_model_name,
        "tokenizer_path": double.model_path,
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
        "load_format": "auto",
        "reasoning_parser": None,
        "tool_call_parser": None,
    }
    request.answer(200, orjson.dumps(answer))


def server_info(double: SGLangDouble, request: HttpRequest) -> None:
    """``GET /server_info``: on the Python front end with the keys in clear text, as SGLang does."""
    common = {
        "model_path": double.model_path,
        "served_model_name": double.served_model_name,
        "tokenizer_path": double.model_path,
        "max_total_num_tokens": 1_000_000,
        "version": "0.5.19",
        "internal_states": [{"effective_max_running_requests_per_dp": 16}],
    }
    if double.frontend == "rust":
        answer = common | {"max_context_length": double.context_length}
    else:
        answer = common | {
            "context_length": double.context_length,
            "max_req_input_len": double.context_length - SLACK + 1,
            "page_size": double.page_size,
            "disable_radix_cache": double.disable_radix_cache,
            "skip_tokenizer_init": False,
            "api_key": double.api_key,
            "admin_api_key": double.admin_api_key,
        }
    request.answer(200, orjson.dumps(answer))


def models(double: SGLangDouble, request: HttpRequest) -> None:
    """``GET /v1/models``."""
    model = {"id": double.served_model_name, "object": "model", "created": 0, "owned_by": "sglang"}
    more = {"root": double.served_model_name, "parent": None, "max_model_len": double.context_length}
    request.answer(200, orjson.dumps({"object": "list", "data": [model | more]}))


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
