"""What the double does with prompts: it queues, runs and aborts them, and keeps what they leave in the prefix cache."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

import orjson
from sglang_double_answers import QUEUE_FULL, refused, result, strike_after, too_long
from sglang_double_jobs import Call, Job
from sglang_double_model import PrefixTree

if TYPE_CHECKING:
    from sglang_double import SGLangDouble

TREE_TOKENS = 2_000_000
"""The prefix cache is emptied after this many tokens: the double may serve a benchmark for a long time."""


def submit(double: SGLangDouble, call: Call) -> None:
    """Queue a call's prompts."""
    room = math.inf if double.max_queued is None else double.max_queued - len(double.waiting)
    if len(call.jobs) > room + double.max_running - double.running:
        if double.frontend == "python":
            call.request.answer(503, QUEUE_FULL)
        return  # the Rust front end never answers
    call.request.on_disconnect = lambda: disconnected(double, call)
    for job in call.jobs:
        if len(job.prompt) > double.max_prompt:
            job.state = "done"
            job.result = refused(too_long(len(job.prompt), double.context_length), double.frontend)
        else:
            double.jobs[job.rid] = job
            double.waiting.append(job)
    double.most_at_once = max(double.most_at_once, len(double.jobs))
    advance(double)
    respond(double, call)


def advance(double: SGLangDouble) -> None:
    """Start waiting prompts while there is room."""
    while double.waiting and double.running < double.max_running:
        job = double.waiting.popleft()
        if job.state != "waiting":
            continue
        job.state = "running"
        double.running += 1
        if double.keeps_tree:
            matched = min(double.tree.match(job.packed), len(job.prompt) - 1)
            job.cached = matched // double.page_size * double.page_size
        computed = len(job.prompt) - job.cached
        double.computed_tokens += computed
        seconds = double.latency + (computed / double.prefill_rate if double.prefill_rate < math.inf else 0.0)
        if job.call.fault is not None and job.call.fault.kind == "slow":
            seconds += job.call.fault.seconds
        if seconds > 0:
            job.timer = asyncio.get_running_loop().call_later(seconds, complete, double, job)
        else:
            complete(double, job, answer=False)


def complete(double: SGLangDouble, job: Job, *, answer: bool = True) -> None:
    """A prompt is through."""
    if double.keeps_tree:
        double.tree_tokens += len(job.prompt)
        if double.tree_tokens > TREE_TOKENS:
            double.tree, double.tree_tokens = PrefixTree(), len(job.prompt)
        double.tree.insert(job.packed)
    job.result = result(job, double.frontend)
    double.completed += 1
    forget(double, job)
    if double.strict and len(job.labels) == 1:
        double.rules.warmed(job.packed)
    if answer:
        respond(double, job.call)
        advance(double)


def forget(double: SGLangDouble, job: Job) -> None:
    """Take a prompt out of the scheduler."""
    if job.timer is not None:
        job.timer.cancel()
    if job.state == "running":
        double.running -= 1
    job.state = "done"
    double.jobs.pop(job.rid, None)


def respond(double: SGLangDouble, call: Call) -> None:
    """Answer a call when all of its prompts are done."""
    if any(job.result is None for job in call.jobs):
        return
    results = [job.result for job in call.jobs]
    if call.fault is not None and strike_after(call, call.fault, results):
        return
    failed = next((r for r in results if r is not None and "error" in r), None)
    if failed is not None and (not call.batch or double.frontend == "python"):
        call.request.answer(400, orjson.dumps(failed))
        return
    payload: Any = results if call.batch else results[0]
    call.request.answer(200, orjson.dumps(payload))


def disconnected(double: SGLangDouble, call: Call) -> None:
    """The client of a call hung up: the Rust front end knows at once, the Python one later."""

    def abort() -> None:
        for job in call.jobs:
            abort_job(double, job)

    if double.frontend == "rust":
        abort()
    else:
        asyncio.get_running_loop().call_later(double.disconnect_notice, abort)


def abort_job(double: SGLangDouble, job: Job) -> None:
    """Stop work on a prompt."""
    if job.state == "done":
        return
    job.result = result(job, double.frontend, "Abort in waiting queue" if job.state == "waiting" else "Aborted")
    double.aborted += 1
    forget(double, job)
    respond(double, job.call)
    advance(double)
