"""What the double answers: shapes as recorded, values from the double's model, faults as asked for."""

from __future__ import annotations

import json
import time
import zlib
from typing import TYPE_CHECKING, Any

import orjson
from sglang_double_faults import MEMBER_FAULTS, Fault
from sglang_double_jobs import Call, Job
from sglang_double_model import logprob_of_packed

if TYPE_CHECKING:
    from sglang_double import SGLangDouble

SLACK = 7
"""The longest prompt is the context length less this."""
QUEUE_FULL = orjson.dumps(
    {"object": "error", "message": "The request queue is full.", "type": "503", "param": None, "code": 503}
)


def result(job: Job, frontend: str, aborted: str | None = None) -> dict[str, Any]:
    """One prompt's object of the answer; with ``aborted``, why there is none."""
    hashed = zlib.crc32(job.packed)
    entries = [[logprob_of_packed(hashed, label), label, None] for label in job.labels]
    meta: dict[str, Any] = {"id": job.rid, "prompt_tokens": len(job.prompt), "completion_tokens": 1}
    meta["finish_reason"] = {"type": "length", "length": 1}
    if job.labelled:
        meta["input_token_logprobs"] = []
        meta["output_token_logprobs"] = [[-1.25, 198, None]]
        meta["output_token_ids_logprobs"] = [entries]
    meta["e2e_latency"] = 0.001
    if frontend == "python":
        meta |= python_meta(job)
    if aborted is not None:
        if job.state == "waiting":
            del meta["prompt_tokens"]
        meta["completion_tokens"] = 0
        meta["finish_reason"] = {"type": "abort", "message": aborted}
        if job.labelled:
            meta["output_token_logprobs"] = meta["output_token_ids_logprobs"] = []
        return {"text": "", "output_ids": [], "meta_info": meta}
    fault = job.call.fault
    if fault is not None and job is job.call.jobs[min(fault.member, len(job.call.jobs) - 1)]:
        if fault.kind == "element_error":
            return refused("the member is not served", frontend)
        if fault.kind in MEMBER_FAULTS:
            MEMBER_FAULTS[fault.kind](meta)
    return {"text": "\n", "output_ids": [198], "meta_info": meta}


def refused(message: str, frontend: str) -> dict[str, Any]:
    """A prompt that is not served."""
    return {"error": {"message": message} | ({"code": 400} if frontend == "rust" else {})}


def python_meta(job: Job) -> dict[str, Any]:
    """What the Python front end tells beyond the Rust one."""
    now = time.time()
    more: dict[str, Any] = {
        "weight_version": "default",
        "num_retractions": 0,
        "forward_entry_time": now,
        "prefill_finished_time": now,
        "queue_time": 0.0003,
        "reasoning_tokens": 0,
        "cached_tokens": job.cached,
        "weight_versions": [{"version": "default", "start": 0, "end": 1}],
        "cached_tokens_details": {"device": job.cached, "host": 0} if job.cached else None,
        "dp_rank": None,
        "request_received_ts": now,
        "api_server_dispatch_finish_ts": now,
        "request_finished_ts": now,
        "response_sent_to_client_ts": now,
    }
    if job.labelled:
        more |= {"output_token_logprobs_length": 1, "input_token_ids_logprobs": []}
    return more


def too_long(size: int, context: int) -> str:
    """SGLang's two ways of saying it."""
    if size >= context:
        return f"The input ({size} tokens) is longer than the model's context length ({context} tokens)."
    allowed = context - SLACK + 1
    return f"Input length ({size} tokens) exceeds the maximum allowed length ({allowed} tokens). Use a shorter input."


def strike_before(double: SGLangDouble, call: Call, fault: Fault) -> bool:
    """Faults that keep a call from the scheduler; whether this is one."""
    request = call.request
    match fault.kind:
        case "garbage":
            request.answer(200, b"\xff\xfe{not json")
        case "not_generate":
            request.answer(200, b'{"object":"list","data":[]}')
        case "empty":
            request.answer(200, b"")
        case "text_500":
            request.answer(500, b"Internal Server Error", "text/plain; charset=utf-8")
        case "queue_full":
            request.answer(503, QUEUE_FULL)
        case "reset":
            request.drop()
        case "hang":
            pass
        case "aborted":
            results = [result(job, double.frontend, "Abort in waiting queue") for job in call.jobs]
            request.answer(200, orjson.dumps(results if call.batch else results[0]))
        case "die":
            double.die()
        case _:
            return False
    return True


def strike_after(call: Call, fault: Fault, results: list[Any]) -> bool:
    """Faults in the answer as a whole; whether it has been given."""
    match fault.kind:
        case "truncated":
            body = orjson.dumps(results if call.batch else results[0])
            call.request.answer_partly(body[: len(body) // 2], len(body))
        case "object":
            call.request.answer(200, orjson.dumps(results[0] if call.batch else results))
        case "nan" | "infinity":
            # As Python's own encoder writes them.
            call.request.answer(200, json.dumps(results if call.batch else results[0]).encode())
        case "swapped":
            results.reverse()
            return False
        case "short":
            results.pop()
            return False
        case _:
            return False
    return True
