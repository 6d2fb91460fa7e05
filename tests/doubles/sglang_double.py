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
import gc
import math
import os
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Literal

from attrs import define, field
from sglang_double_answers import SLACK, strike_before
from sglang_double_faults import Fault
from sglang_double_http import Connection, HttpRequest
from sglang_double_jobs import Call, Job
from sglang_double_model import PrefixTree
from sglang_double_requests import Refusal, read_members
from sglang_double_routes import (
    abort_request,
    add_fault,
    flush_cache,
    health,
    model_info,
    models,
    report,
    server_info,
)
from sglang_double_rules import Rules
from sglang_double_scheduler import forget, submit


@define(eq=False, kw_only=True)
class SGLangDouble:
    """The server.

    Attributes:
        frontend: Whose HTTP contract it keeps.
        latency: Seconds that each prompt takes, whatever its length; 0 answers at once.
        prefill_rate: Tokens per second; uncached tokens add to the latency.
        max_running, max_queued: As SGLang's flags; with a full queue ``python`` says 503 and ``rust`` is silent.
        disconnect_notice: Seconds until the Python front end notices that a client hung up (really up to 4).
        tokenize: Makes ids of text.
        warm_up: Seconds after a start in which the server's own plain call is at work.
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
    tokenize: Callable[[str], list[int]] | None = None
    warm_up: float = 0.0
    strict: bool = True
    on_death: Callable[[], None] = lambda: None
    faults: list[Fault] = field(factory=list)
    port: int = 0
    calls: list[Call] = field(factory=list)
    aborts: list[str] = field(factory=list)
    """Rids that ``/abort_request`` was asked for."""
    completed: int = 0
    aborted: int = 0
    health_checks: int = 0
    computed_tokens: int = 0
    most_at_once: int = 0
    """Prompts, waiting and running."""
    jobs: dict[str, Job] = field(factory=dict)
    running: int = 0
    waiting: deque[Job] = field(factory=deque)
    tree: PrefixTree = field(factory=PrefixTree)
    tree_tokens: int = 0
    connections: set[Connection] = field(factory=set)
    started_at: float = -math.inf
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
    def starting(self) -> bool:
        """Its own plain call is at work."""
        return time.monotonic() - self.started_at < self.warm_up

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
        self.tree, self.tree_tokens, self.started_at = PrefixTree(), 0, time.monotonic()
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
            forget(self, job)
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
            body, batch, members = read_members(
                request.body, self.frontend, self.vocab_size, self.context_length, self.tokenize
            )
        except Refusal as refusal:
            if refusal.fatal:
                self.rules.violations.append(refusal.message)
                self.die()
            else:
                request.answer(refusal.status, refusal.body(self.frontend), refusal.content_type)
            return
        call = Call(request, batch)
        labelled = bool(body.get("return_logprob"))
        call.jobs = [Job(rid, prompt, packed, labels, labelled, call) for rid, prompt, packed, labels in members]
        if self.strict:
            self.calls.append(call)
            beside = [job.packed for job in self.jobs.values() if job.call.routing_key == call.routing_key]
            self.rules.check(body, members, beside=beside)
        if (labelled and self.starting) or any(job.labelled != labelled for job in self.jobs.values()):
            self.rules.violations.append("a call without labels met one with labels in a batch: the scheduler is dead")
            self.die()
            return
        call.fault = next((f for f in self.faults if f.strikes(len(call.jobs[0].labels))), None)
        if call.fault is not None and strike_before(self, call, call.fault):
            return
        submit(self, call)


ROUTES: dict[tuple[str, str], Callable[[SGLangDouble, HttpRequest], None]] = {
    ("POST", "/generate"): SGLangDouble.generate,
    ("POST", "/abort_request"): abort_request,
    ("POST", "/flush_cache"): flush_cache,
    ("GET", "/flush_cache"): flush_cache,
    ("GET", "/health"): health,
    ("GET", "/health_generate"): health,
    ("GET", "/ping"): health,
    ("GET", "/model_info"): model_info,
    ("GET", "/get_model_info"): model_info,
    ("GET", "/server_info"): server_info,
    ("GET", "/get_server_info"): server_info,
    ("GET", "/v1/models"): models,
    ("POST", "/double/fault"): add_fault,
    ("GET", "/double/report"): report,
}
PYTHON_ONLY = {"/abort_request", "/flush_cache", "/ping", "/get_server_info"}
OPEN_ROUTES = {"/health", "/health_generate", "/ping"}
ADMIN_ROUTES = {"/abort_request", "/flush_cache"}


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
    # Prompts are lists of thousands of numbers: going through them for cycles would be much of the double's work.
    gc.set_threshold(50_000, 20, 100)
    try:
        from uvloop import run  # noqa: PLC0415 - the double also runs where uvloop does not exist
    except ImportError:
        run = asyncio.run
    run(serve_for_ever(double))


if __name__ == "__main__":
    sys.exit(main())
