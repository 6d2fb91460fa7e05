"""A stand-in for SGLang 0.5.19 on a real socket: both front ends, made from recorded exchanges.

In a test::

    async with SGLangDouble(frontend="python").serving() as double:
        ...  # double.url
    assert double.rules.violations == []

As a process, for benchmarks and process tests::

    python tests/doubles/sglang_double.py --port 30000 --frontend rust --latency 0

It answers with log-probabilities that follow from the prompt and the label (:func:`sglang_double_model.logprob`), so a
test can tell whether an answer belongs to its question.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import sys
import time
import zlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal
from uuid import uuid4

import orjson
from attrs import define, field
from sglang_double_faults import MEMBER_FAULTS, Fault
from sglang_double_http import Connection, HttpRequest
from sglang_double_model import PrefixTree, logprob_of_packed, pack
from sglang_double_requests import Refusal, read_members
from sglang_double_rules import Rules

SLACK = 7
"""The longest prompt is the context length less this."""
TREE_TOKENS = 2_000_000
"""The prefix cache is emptied after this many tokens: the double may serve a benchmark for a long time."""


@define(eq=False)
class Job:
    """One prompt of one call."""

    rid: str
    prompt: list[int]
    packed: bytes
    labels: list[int]
    labelled: bool
    call: Call
    state: Literal["waiting", "running", "done"] = "waiting"
    cached: int = 0
    timer: asyncio.TimerHandle | None = None
    result: dict[str, Any] | None = None


@define(eq=False)
class Call:
    """One ``/generate``."""

    request: HttpRequest
    batch: bool
    fault: Fault | None = None
    jobs: list[Job] = field(factory=list)
    at: float = field(factory=time.monotonic)

    @property
    def routing_key(self) -> str | None:
        """What a router in front of several workers would route by."""
        return self.request.headers.get("x-smg-routing-key")


@define(eq=False, kw_only=True)
class SGLangDouble:
    """The server.

    Attributes:
        frontend: Whose HTTP contract it keeps.
        latency: Seconds that each prompt takes, whatever its length; 0 answers at once.
        prefill_rate: Tokens per second; uncached tokens add to the latency.
        max_running, max_queued: As SGLang's flags; with a full queue ``python`` says 503 and ``rust`` is silent.
        disconnect_notice: Seconds until the Python front end notices that a client hung up (really up to 4).
        strict: Check every call against the rules and keep it in ``calls``.
        faults: What goes wrong, in the order of asking.
    """

    frontend: Literal["rust", "python"] = "rust"
    vocab_size: int = 49152
    context_length: int = 2048
    page_size: int = 1
    latency: float = 0.0
    prefill_rate: float = math.inf
    max_running: int = 10_000
    max_queued: int | None = None
    disconnect_notice: float = 0.1
    api_key: str | None = None
    admin_api_key: str | None = None
    model_path: str = "MODEL_DIR"
    served_model_name: str = "smollm2"
    disable_radix_cache: bool = False
    strict: bool = True
    on_death: Callable[[], None] = lambda: None
    faults: list[Fault] = field(factory=list)
    port: int = 0
    calls: list[Call] = field(factory=list)
    aborts: list[str] = field(factory=list)
    """Rids that ``/abort_request`` was asked for."""
    completed: int = 0
    aborted: int = 0
    computed_tokens: int = 0
    most_at_once: int = 0
    """Prompts, waiting and running."""
    jobs: dict[str, Job] = field(factory=dict)
    running: int = 0
    waiting: deque[Job] = field(factory=deque)
    tree: PrefixTree = field(factory=PrefixTree)
    tree_tokens: int = 0
    connections: set[Connection] = field(factory=set)
    rules: Rules = field()
    server: asyncio.Server | None = None

    @rules.default
    def _rules(self) -> Rules:
        return Rules(self.vocab_size, self.max_prompt)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def max_prompt(self) -> int:
        """The longest prompt."""
        return self.context_length - SLACK

    @property
    def idle(self) -> bool:
        """No prompt is waiting or running."""
        return not self.jobs

    @property
    def keeps_tree(self) -> bool:
        """Whether anything depends on what is cached."""
        return not self.disable_radix_cache and (self.frontend == "python" or self.prefill_rate < math.inf)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[SGLangDouble]:
        """Listen while the block runs."""
        await self.start()
        try:
            yield self
        finally:
            self.stop()

    async def start(self) -> None:
        """Listen; after a death or a stop, on the same port again, with nothing cached."""
        self.tree, self.tree_tokens = PrefixTree(), 0
        self.server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self.handle, self.connections), "127.0.0.1", self.port
        )
        self.port = self.server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Stop listening and drop every connection."""
        if self.server is not None:
            self.server.close()
            self.server = None
        for job in list(self.jobs.values()):
            self.forget(job)
        self.waiting.clear()
        for connection in list(self.connections):
            if connection.transport is not None:
                connection.transport.abort()

    def die(self) -> None:
        """What a crash of the scheduler looks like from outside."""
        self.stop()
        self.on_death()

    def handle(self, request: HttpRequest) -> None:
        """Route a request."""
        if self.frontend == "python" and not self.authorized(request):
            request.answer(401, b'{"error":"Unauthorized"}')
            return
        route = ROUTES.get((request.method, request.path))
        if route is None or (self.frontend == "rust" and request.path in PYTHON_ONLY):
            not_found = (b"", None) if self.frontend == "rust" else (b'{"detail":"Not Found"}', "application/json")
            request.answer(404, *not_found)
        else:
            route(self, request)

    def authorized(self, request: HttpRequest) -> bool:
        """Whether the key is right for the route."""
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.path in OPEN_ROUTES or request.path.startswith("/double/"):
            return True
        if request.path in ADMIN_ROUTES and self.admin_api_key is not None:
            return given == self.admin_api_key
        return self.api_key is None or given == self.api_key

    def generate(self, request: HttpRequest) -> None:
        """``POST /generate``."""
        try:
            body, batch, members = read_members(request.body, self.frontend, self.vocab_size, self.context_length)
        except Refusal as refusal:
            if refusal.fatal:
                self.rules.violations.append(refusal.message)
                self.die()
            else:
                request.answer(refusal.status, refusal.body(self.frontend), refusal.content_type)
            return
        call = Call(request, batch)
        labelled = bool(body.get("return_logprob"))
        call.jobs = [Job(rid, prompt, pack(prompt), labels, labelled, call) for rid, prompt, labels in members]
        if self.strict:
            self.calls.append(call)
            self.rules.check(body, members)
        if any(job.labelled != labelled for job in self.jobs.values()):
            self.rules.violations.append("a call without labels met one with labels in a batch: the scheduler is dead")
            self.die()
            return
        call.fault = next((f for f in self.faults if f.strikes(len(call.jobs[0].labels))), None)
        if call.fault is not None and self.strike_before(call, call.fault):
            return
        self.submit(call)

    def submit(self, call: Call) -> None:
        """Queue a call's prompts."""
        room = math.inf if self.max_queued is None else self.max_queued - len(self.waiting)
        if len(call.jobs) > room + self.max_running - self.running:
            if self.frontend == "python":
                call.request.answer(503, QUEUE_FULL)
            return  # the Rust front end never answers
        call.request.on_disconnect = lambda: self.disconnected(call)
        for job in call.jobs:
            if len(job.prompt) > self.max_prompt:
                job.state = "done"
                job.result = {"error": {"message": too_long(len(job.prompt), self.context_length), "code": 400}}
            else:
                self.jobs[job.rid] = job
                self.waiting.append(job)
        self.most_at_once = max(self.most_at_once, len(self.jobs))
        self.advance()
        self.respond(call)

    def advance(self) -> None:
        """Start waiting prompts while there is room."""
        while self.waiting and self.running < self.max_running:
            job = self.waiting.popleft()
            if job.state != "waiting":
                continue
            job.state = "running"
            self.running += 1
            if self.keeps_tree:
                matched = min(self.tree.match(job.packed), len(job.prompt) - 1)
                job.cached = matched // self.page_size * self.page_size
            computed = len(job.prompt) - job.cached
            self.computed_tokens += computed
            seconds = self.latency + (computed / self.prefill_rate if self.prefill_rate < math.inf else 0.0)
            if job.call.fault is not None and job.call.fault.kind == "slow":
                seconds += job.call.fault.seconds
            if seconds > 0:
                job.timer = asyncio.get_running_loop().call_later(seconds, self.complete, job)
            else:
                self.complete(job, respond=False)

    def complete(self, job: Job, *, respond: bool = True) -> None:
        """A prompt is through."""
        if self.keeps_tree:
            self.tree_tokens += len(job.prompt)
            if self.tree_tokens > TREE_TOKENS:
                self.tree, self.tree_tokens = PrefixTree(), len(job.prompt)
            self.tree.insert(job.packed)
        job.result = self.result(job, None)
        self.completed += 1
        self.forget(job)
        if self.strict and len(job.labels) == 1:
            self.rules.warmed(job.packed)
        if respond:
            self.respond(job.call)
            self.advance()

    def forget(self, job: Job) -> None:
        """Take a prompt out of the scheduler."""
        if job.timer is not None:
            job.timer.cancel()
        if job.state == "running":
            self.running -= 1
        job.state = "done"
        self.jobs.pop(job.rid, None)

    def result(self, job: Job, aborted: str | None) -> dict[str, Any]:
        """One prompt's object of the answer."""
        hashed = zlib.crc32(job.packed)
        entries = [[logprob_of_packed(hashed, label), label, None] for label in job.labels]
        meta: dict[str, Any] = {"id": job.rid, "prompt_tokens": len(job.prompt), "completion_tokens": 1}
        meta["finish_reason"] = {"type": "length", "length": 1}
        if job.labelled:
            meta["input_token_logprobs"] = []
            meta["output_token_logprobs"] = [[-1.25, 198, None]]
            meta["output_token_ids_logprobs"] = [entries]
        meta["e2e_latency"] = 0.001
        if self.frontend == "python":
            meta |= self.python_meta(job)
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
                return {"error": {"message": "the member is not served", "code": 400}}
            if fault.kind in MEMBER_FAULTS:
                MEMBER_FAULTS[fault.kind](meta)
        return {"text": "\n", "output_ids": [198], "meta_info": meta}

    def python_meta(self, job: Job) -> dict[str, Any]:
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
            "cached_tokens_details": {"device": job.cached, "host": 0},
            "dp_rank": None,
            "request_received_ts": now,
            "api_server_dispatch_finish_ts": now,
            "request_finished_ts": now,
            "response_sent_to_client_ts": now,
        }
        if job.labelled:
            more |= {"output_token_logprobs_length": 1, "input_token_ids_logprobs": []}
        return more

    def respond(self, call: Call) -> None:
        """Answer a call when all of its prompts are done."""
        if any(job.result is None for job in call.jobs):
            return
        results = [job.result for job in call.jobs]
        if call.fault is not None and self.strike_after(call, call.fault, results):
            return
        failed = next((r for r in results if r is not None and "error" in r), None)
        if failed is not None and (not call.batch or self.frontend == "python"):
            call.request.answer(400, orjson.dumps(failed))
            return
        payload: Any = results if call.batch else results[0]
        if call.fault is not None and call.fault.kind in ("nan", "infinity"):
            call.request.answer(200, python_json(payload))
        else:
            call.request.answer(200, orjson.dumps(payload))

    def strike_before(self, call: Call, fault: Fault) -> bool:
        """Faults that keep a call from the scheduler."""
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
                results = [self.result(job, "Abort in waiting queue") for job in call.jobs]
                request.answer(200, orjson.dumps(results if call.batch else results[0]))
            case "die":
                self.die()
            case _:
                return False
        return True

    def strike_after(self, call: Call, fault: Fault, results: list[Any]) -> bool:
        """Faults in the answer as a whole."""
        match fault.kind:
            case "truncated":
                body = orjson.dumps(results if call.batch else results[0])
                call.request.answer_partly(body[: len(body) // 2], len(body))
                return True
            case "swapped":
                results.reverse()
            case "short":
                results.pop()
            case "object":
                call.request.answer(200, orjson.dumps(results[0] if call.batch else results))
                return True
        return False

    def disconnected(self, call: Call) -> None:
        """The client of a call hung up: the Rust front end knows at once, the Python one later."""

        def abort() -> None:
            for job in call.jobs:
                self.abort_job(job)

        if self.frontend == "rust":
            abort()
        else:
            asyncio.get_running_loop().call_later(self.disconnect_notice, abort)

    def abort_job(self, job: Job) -> None:
        """Stop work on a prompt."""
        if job.state == "done":
            return
        job.result = self.result(job, "Abort in waiting queue" if job.state == "waiting" else "Aborted")
        self.aborted += 1
        self.forget(job)
        self.respond(job.call)
        self.advance()

    def abort_request(self, request: HttpRequest) -> None:
        """``POST /abort_request``: by the beginning of a rid, if that very rid is known."""
        body = orjson.loads(request.body or b"{}")
        rid = body.get("rid", "")
        self.aborts.append(rid)
        if rid in self.jobs or body.get("abort_all"):
            for job in [job for job in self.jobs.values() if job.rid.startswith(rid)]:
                self.abort_job(job)
        request.answer(200, b"", None)

    def flush_cache(self, request: HttpRequest) -> None:
        """``POST /flush_cache``."""
        if not self.idle:
            request.answer(400, b"Flush cache failed.\n", None)
            return
        self.tree, self.tree_tokens = PrefixTree(), 0
        request.answer(200, b"Cache flushed.\n", None)

    def health(self, request: HttpRequest) -> None:
        """``GET /health``."""
        request.answer(200, b"", None)

    def model_info(self, request: HttpRequest) -> None:
        """``GET /model_info``."""
        answer = {
            "model_path": self.model_path,
            "served_model_name": self.served_model_name,
            "tokenizer_path": self.model_path,
            "is_generation": True,
            "preferred_sampling_params": None,
            "weight_version": "default",
            "load_format": "auto",
            "reasoning_parser": None,
            "tool_call_parser": None,
        }
        request.answer(200, orjson.dumps(answer))

    def server_info(self, request: HttpRequest) -> None:
        """``GET /server_info``: on the Python front end with the keys in clear text, as SGLang does."""
        common = {
            "model_path": self.model_path,
            "served_model_name": self.served_model_name,
            "tokenizer_path": self.model_path,
            "max_total_num_tokens": 1_000_000,
            "version": "0.5.19",
            "internal_states": [{"effective_max_running_requests_per_dp": 16}],
        }
        if self.frontend == "rust":
            answer = common | {"max_context_length": self.context_length}
        else:
            answer = common | {
                "context_length": self.context_length,
                "max_req_input_len": self.context_length - SLACK + 1,
                "page_size": self.page_size,
                "disable_radix_cache": self.disable_radix_cache,
                "skip_tokenizer_init": False,
                "api_key": self.api_key,
                "admin_api_key": self.admin_api_key,
            }
        request.answer(200, orjson.dumps(answer))

    def models(self, request: HttpRequest) -> None:
        """``GET /v1/models``."""
        model = {"id": self.served_model_name, "object": "model", "created": 0, "owned_by": "sglang"}
        more = {"root": self.served_model_name, "parent": None, "max_model_len": self.context_length}
        request.answer(200, orjson.dumps({"object": "list", "data": [model | more]}))

    def add_fault(self, request: HttpRequest) -> None:
        """``POST /double/fault``: a :class:`Fault` as JSON."""
        self.faults.append(Fault(**orjson.loads(request.body)))
        request.answer(200, b"{}")

    def report(self, request: HttpRequest) -> None:
        """``GET /double/report``: what a test of another process wants to know."""
        answer = {
            "violations": self.rules.violations,
            "completed": self.completed,
            "aborted": self.aborted,
            "computed_tokens": self.computed_tokens,
            "in_flight": len(self.jobs),
            "connections": len(self.connections),
        }
        request.answer(200, orjson.dumps(answer))


ROUTES: dict[tuple[str, str], Callable[[SGLangDouble, HttpRequest], None]] = {
    ("POST", "/generate"): SGLangDouble.generate,
    ("POST", "/abort_request"): SGLangDouble.abort_request,
    ("POST", "/flush_cache"): SGLangDouble.flush_cache,
    ("GET", "/flush_cache"): SGLangDouble.flush_cache,
    ("GET", "/health"): SGLangDouble.health,
    ("GET", "/health_generate"): SGLangDouble.health,
    ("GET", "/ping"): SGLangDouble.health,
    ("GET", "/model_info"): SGLangDouble.model_info,
    ("GET", "/get_model_info"): SGLangDouble.model_info,
    ("GET", "/server_info"): SGLangDouble.server_info,
    ("GET", "/get_server_info"): SGLangDouble.server_info,
    ("GET", "/v1/models"): SGLangDouble.models,
    ("POST", "/double/fault"): SGLangDouble.add_fault,
    ("GET", "/double/report"): SGLangDouble.report,
}
PYTHON_ONLY = {"/abort_request", "/flush_cache", "/ping", "/get_server_info"}
OPEN_ROUTES = {"/health", "/health_generate", "/ping"}
ADMIN_ROUTES = {"/abort_request", "/flush_cache"}
QUEUE_FULL = orjson.dumps(
    {"object": "error", "message": "The request queue is full.", "type": "503", "param": None, "code": 503}
)


def too_long(size: int, context: int) -> str:
    """SGLang's two ways of saying it."""
    if size >= context:
        return f"The input ({size} tokens) is longer than the model's context length ({context} tokens)."
    allowed = context - SLACK + 1
    return f"Input length ({size} tokens) exceeds the maximum allowed length ({allowed} tokens). Use a shorter input."


def python_json(payload: Any) -> bytes:
    """JSON with ``NaN`` and ``-Infinity``, as Python's own encoder writes it."""
    import json  # noqa: PLC0415 - for two faults; the fast path stays with orjson

    return json.dumps(payload).encode()


def new_rid() -> str:
    """A rid for a call that brought none."""
    return uuid4().hex


async def serve_for_ever(double: SGLangDouble) -> None:
    """Serve until the process is stopped."""
    async with double.serving():
        print(f"listening on {double.url}", flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="A stand-in for SGLang 0.5.19.")
    parser.add_argument("--port", type=int, default=30000)
    parser.add_argument("--frontend", choices=["rust", "python"], default="rust")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds per prompt")
    parser.add_argument("--prefill-rate", type=float, default=math.inf, help="uncached tokens per second")
    parser.add_argument("--context-length", type=int, default=40_000)
    parser.add_argument("--vocab-size", type=int, default=49152)
    parser.add_argument("--max-running", type=int, default=10_000)
    parser.add_argument("--max-queued", type=int)
    parser.add_argument("--page-size", type=int, default=1)
    parser.add_argument("--api-key")
    parser.add_argument("--model-path", default="MODEL_DIR")
    parser.add_argument("--served-model-name", default="smollm2")
    parser.add_argument("--strict", action="store_true", help="check and keep every call: slower, and it grows")
    options = vars(parser.parse_args())
    double = SGLangDouble(**options, on_death=lambda: os._exit(137))
    try:
        from uvloop import run  # noqa: PLC0415 - the double also runs where uvloop does not exist
    except ImportError:
        run = asyncio.run
    run(serve_for_ever(double))


if __name__ == "__main__":
    sys.exit(main())
