"""A stand-in for vLLM 0.32.0 on a real socket, made from recorded exchanges.

It answers with the log-probabilities of :func:`sglang_double_model.logprob`, so a test can tell whether an answer
belongs to its question.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from os.path import commonprefix
from typing import Any

import orjson
from attrs import define, field
from sglang_double_http import Connection, HttpRequest
from sglang_double_model import WIDTH, PrefixTree, pack
from sglang_double_rules import COLD, Rules
from vllm_double_answers import Fault, Refusal, answer_of, check_model, checked_labels, checked_prompts, strike, struck

FIXED = {
    "max_tokens": 1,
    "temperature": 0,
    "logprobs": 0,
    "return_tokens_as_token_ids": True,
    "add_special_tokens": False,
}
"""Fields that every call has to have with these values."""


@define(eq=False)
class Call:
    """One ``/v1/completions``."""

    request: HttpRequest
    prompts: list[list[int]]
    labels: list[int]
    packed: list[bytes]
    session: str | None
    fault: Fault | None = None
    timer: asyncio.TimerHandle | None = None
    cached: int = 0


@define(eq=False, kw_only=True)
class VLLMDouble:
    """The server.

    Attributes:
        latency: Seconds that each call takes; 0 answers at once.
        max_model_len: Tokens of a prompt with its output.
        block_size: The prefix cache holds blocks of so many tokens.
        prompt_details: As ``--enable-prompt-tokens-details``.
        root: Where the model comes from.
        adapters: Names of adapters that are listed before the model.
        reads_labels: False is a server that is too old: it does not know ``logprob_token_ids``.
        tokenize: Makes ids of text; ``None`` is a server without the route.
        faults: What goes wrong, in the order of asking.
    """

    vocab_size: int = 49152
    max_model_len: int = 2048
    latency: float = 0.0
    block_size: int = 16
    prefix_cache: bool = True
    prompt_details: bool = True
    api_key: str | None = None
    root: str = "MODEL_DIR"
    model: str = "smollm2"
    version: str = "0.32.0"
    adapters: tuple[str, ...] = ()
    reads_labels: bool = True
    tokenize: Callable[[str], list[int]] | None = None
    faults: list[Fault] = field(factory=list)
    port: int = 0
    calls: list[Call] = field(factory=list)
    """All that reached the scheduler."""
    running: list[Call] = field(factory=list)
    completed: int = 0
    """Prompts."""
    aborted: int = 0
    """Calls."""
    most_at_once: int = 0
    """Prompts."""
    tree: PrefixTree = field(factory=PrefixTree)
    connections: set[Connection] = field(factory=set)
    rules: Rules = field()
    server: asyncio.Server | None = None

    @rules.default
    def _rules(self) -> Rules:
        return Rules(self.vocab_size, self.max_model_len - 1)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def idle(self) -> bool:
        """No call is at work."""
        return not self.running

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[VLLMDouble]:
        """Listen while the block runs."""
        await self.start()
        try:
            yield self
        finally:
            self.stop()

    async def start(self) -> None:
        """Listen; after a death or a stop, on the same port again, with nothing cached."""
        self.tree = PrefixTree()
        self.server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self.handle, self.connections), "127.0.0.1", self.port
        )
        self.port = self.server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Stop listening and drop every connection."""
        if self.server is not None:
            self.server.close()
            self.server = None
        for call in list(self.running):
            self.forget(call)
        for connection in list(self.connections):
            if connection.transport is not None:
                connection.transport.abort()

    def handle(self, request: HttpRequest) -> None:
        """Route a request. Keys guard ``/v1`` alone."""
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.api_key is not None and request.path.startswith("/v1") and key != self.api_key:
            request.answer(401, b'{"error":"Unauthorized"}')
            return
        match request.method, request.path:
            case "POST", "/v1/completions":
                self.complete(request)
            case "GET", "/version":
                request.answer(200, orjson.dumps({"version": self.version}))
            case "GET", "/v1/models":
                request.answer(200, orjson.dumps({"object": "list", "data": self.models()}))
            case "GET", "/health":
                request.answer(200, b"", None)
            case "GET", "/metrics":
                request.answer(200, self.metrics().encode(), "text/plain; version=0.0.4; charset=utf-8")
            case "POST", "/tokenize" if self.tokenize is not None:
                tokens = self.tokenize(orjson.loads(request.body)["prompt"])
                answer = {"count": len(tokens), "max_model_len": self.max_model_len, "tokens": tokens}
                request.answer(200, orjson.dumps({**answer, "token_strs": None}))
            case _:
                request.answer(404, b'{"detail":"Not Found"}')

    def models(self) -> list[dict[str, Any]]:
        """What ``/v1/models`` lists."""
        common = {"object": "model", "created": 0, "owned_by": "vllm", "max_model_len": self.max_model_len}
        adapters = [{**common, "id": name, "root": f"/{name}", "parent": self.model} for name in self.adapters]
        return [*adapters, {**common, "id": self.model, "root": self.root, "parent": None, "permission": []}]

    def metrics(self) -> str:
        """What ``/metrics`` says, as far as it is read."""
        return (
            f'vllm:num_requests_running{{engine="0",model_name="{self.model}"}} {len(self.running)}.0\n'
            f'vllm:cache_config_info{{block_size="{self.block_size}",enable_prefix_caching="{self.prefix_cache}",'
            f'engine="0"}} 1.0\n'
        )

    def complete(self, request: HttpRequest) -> None:
        """``POST /v1/completions``."""
        try:
            body = orjson.loads(request.body)
            check_model(body, self.model)
            prompts = checked_prompts(body, self.vocab_size, self.max_model_len)
            labels = checked_labels(body, self.vocab_size)
        except Refusal as refusal:
            request.answer(refusal.status, refusal.body())
            return
        call = Call(request, prompts, labels, list(map(pack, prompts)), request.headers.get("x-session-id"))
        self.check(call, body)
        self.calls.append(call)
        call.fault = struck(self.faults, len(labels))
        if call.fault is not None and strike(self, request, call.fault):
            return
        self.running.append(call)
        self.most_at_once = max(self.most_at_once, sum(len(one.prompts) for one in self.running))
        request.on_disconnect = lambda: self.abort(call)
        seconds = self.latency + (call.fault.seconds if call.fault is not None and call.fault.kind == "slow" else 0)
        if seconds > 0:
            call.timer = asyncio.get_running_loop().call_later(seconds, self.finish, call)
        else:
            self.finish(call)

    def check(self, call: Call, body: dict[str, Any]) -> None:
        """Note what is wrong with a call."""
        violations = self.rules.violations
        violations.extend(
            f"{name} is {body.get(name)!r}, not {value!r}" for name, value in FIXED.items() if body.get(name) != value
        )
        if len(set(call.labels)) != len(call.labels):
            violations.append(f"a call asks for a label twice: {call.labels}")
        if len(call.labels) == 1:
            return
        beside = [packed for one in self.running if one.session == call.session for packed in one.packed]
        branches = [*beside, *call.packed]
        common = len(commonprefix(branches)) // WIDTH  # noqa: RUF071 - of bytes, no paths
        if common * (len(branches) - 1) >= COLD:
            cold = [len(one) // WIDTH for one in call.packed if not self.rules.continues_a_warm_up(one)]
            violations.extend(f"a branch of {size} tokens whose prefix has not been answered yet" for size in cold)

    def finish(self, call: Call) -> None:
        """A call is through."""
        self.forget(call)
        for packed in call.packed:
            matched = min(self.tree.match(packed), len(packed) // WIDTH - 1) // self.block_size * self.block_size
            call.cached = matched if self.prefix_cache else 0  # of the last prompt alone, as vLLM 0.32 reports it
            self.tree.insert(packed)
            if len(call.labels) == 1:
                self.rules.warmed(packed)
        self.completed += len(call.prompts)
        hashes = [zlib.crc32(packed) for packed in call.packed]
        answer = answer_of(call.prompts, hashes, call.labels if self.reads_labels else [], self.model)
        if self.prompt_details:
            details = {"cached_tokens": call.cached, "created_cache_tokens": None, "multimodal_tokens": None}
            answer["usage"]["prompt_tokens_details"] = details
        if call.fault is None or not call.fault.answer(call.request, answer):
            call.request.answer(200, orjson.dumps(answer))

    def abort(self, call: Call) -> None:
        """The client of a call hung up."""
        if call in self.running:
            self.aborted += 1
            self.forget(call)

    def forget(self, call: Call) -> None:
        """Take a call out of the scheduler."""
        if call.timer is not None:
            call.timer.cancel()
        if call in self.running:
            self.running.remove(call)
