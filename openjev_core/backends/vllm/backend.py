"""vLLM as a :class:`openjev_core.backends.protocol.Backend`: prefixes that are warmed once, branches behind them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

from attrs import define, field, frozen

from openjev_core.backends.calls import check_call
from openjev_core.backends.fanout import WARM_UP_LABELS, ServedPrefix, check_server
from openjev_core.backends.http_client import OK, HttpClient
from openjev_core.backends.protocol import Branch, Reading
from openjev_core.backends.replies import refusal
from openjev_core.backends.slots import Slots
from openjev_core.backends.vllm.wire import MAX_LABELS, PATH, VLLMFacts, body_of, parse, reading_of
from openjev_core.backends.warmth import Warmth

SPARE_LABELS = 32
"""Labels that a prompt may be read at beside its own, so that it can share a call. On vLLM 0.32 a label takes 0.01 ms
of the API server's CPU, and a call 1 ms there and often a step of the engine."""


@define(eq=False, kw_only=True)
class VLLMBackend:
    """A running vLLM, or a router in front of several.

    Attributes:
        http: The connections.
        vocab_size: Ids lie in ``range(vocab_size)``.
        max_prompt_tokens: The longest prompt that leaves room for its output token.
        fanout: ``batch``: one call carries branches of similar labels; ``calls``: one call each.
        slots: Prompts at vLLM at once.
        facts: What the server said about itself at the start.
        warmth: The prefixes that it is known to hold.
        answered_at: See :class:`openjev_core.backends.fanout.PromptServer`.
        name: ``vllm``.
        title: ``vLLM``.
    """

    http: HttpClient
    vocab_size: int
    max_prompt_tokens: int
    fanout: Literal["batch", "calls"]
    slots: Slots
    facts: VLLMFacts = VLLMFacts()
    warmth: Warmth = field(factory=Warmth, repr=False)
    answered_at: float = field(default=0.0, init=False)
    name: str = field(default="vllm", init=False)
    title: str = field(default="vLLM", init=False)

    def prefix(self, ids: Sequence[int], *, key: str, branches: int | None = None) -> ServedPrefix:
        """See :meth:`openjev_core.backends.protocol.Backend.prefix`. vLLM itself decides how long it keeps one."""
        return ServedPrefix(self, Branch(tuple(ids), WARM_UP_LABELS), key, branches)

    def check_branch(self, branch: Branch, before: int) -> None:
        """See :meth:`openjev_core.backends.fanout.PromptServer.check_branch`."""
        check_call("vLLM", branch, before, self.vocab_size, self.max_prompt_tokens)

    def calls(self, branches: Sequence[Branch]) -> list[Sequence[int]]:
        """See :meth:`openjev_core.backends.fanout.PromptServer.calls`: all prompts of a call are read at one list."""
        if self.fanout == "calls":
            return [[position] for position in range(len(branches))]
        lists = list(dict.fromkeys([branch.labels for branch in branches]))
        if len(lists) == 1:
            return [range(len(branches))]
        unions: list[Union] = []
        for labels in sorted(lists, key=len):
            fitting = next((union for union in unions if union.has_room_for(labels)), None)
            if fitting is None:
                fitting = Union(set(), len(labels), set())
                unions.append(fitting)
            fitting.labels.update(labels)
            fitting.lists.add(labels)
        return [
            [position for position, branch in enumerate(branches) if branch.labels in union.lists] for union in unions
        ]

    async def call(self, prefix: Branch | None, branches: Sequence[Branch], key: str) -> list[Reading]:
        """See :meth:`openjev_core.backends.fanout.PromptServer.call`.

        More labels than one call takes are read by calls for the same prompts, one after another. How much was reused
        is known of the last prompt alone: of a call with several, vLLM 0.32 reports that.
        """
        length, before = (0, b"") if prefix is None else (len(prefix.suffix), prefix.suffix_json + b",")
        tokens = [length + len(branch.suffix) for branch in branches]
        labels = sorted({label for branch in branches for label in branch.labels})
        slices = [labels[start : start + MAX_LABELS] for start in range(0, len(labels), MAX_LABELS)]
        found: list[dict[str, float]] = [{} for _ in branches]
        counts: list[int | None] = []
        for part in slices:
            parsed, cached = parse(await self.post(body_of(self.facts.model, before, branches, part), key), tokens)
            counts.append(cached)
            for logprobs, more in zip(found, parsed, strict=True):
                logprobs.update(more)
        reused = [count for count in counts if count is not None]
        shares = [None] * (len(branches) - 1) + [sum(reused) if len(reused) == len(slices) else None]
        return [
            reading_of(logprobs, branch, calls=len(slices), tokens=count, cached=share)
            for logprobs, branch, count, share in zip(found, branches, tokens, shares, strict=True)
        ]

    async def post(self, body: bytes, key: str) -> bytes:
        """``POST /v1/completions``; returns the body of a 200. Cancelling closes the connection, which stops the work.

        Raises:
            BackendUnavailable: The server is not there, breaks off, or says that it cannot take the call now.
            BackendError: Any other status.
        """
        address = self.http.address(PATH.removeprefix("/"))
        # Routers that hash a session keep calls with the same one on one worker.
        status, content = await self.http.send("POST", address, body, {"X-Session-ID": key})
        if status != OK:
            raise refusal("vLLM", status, content)
        self.answered_at = time.monotonic()
        return content

    async def check(self) -> None:
        """See :meth:`openjev_core.backends.protocol.Backend.check`."""
        await check_server(self)

    async def aclose(self) -> None:
        """See :meth:`openjev_core.backends.protocol.Backend.aclose`."""
        await self.http.aclose()


@frozen
class Union:
    """Label lists whose branches share a call.

    Attributes:
        labels: All of them.
        fewest: Labels of the shortest list.
        lists: The lists.
    """

    labels: set[int]
    fewest: int
    lists: set[tuple[int, ...]]

    def has_room_for(self, labels: tuple[int, ...]) -> bool:
        """Whether the branches of one more list may share the call."""
        size = len(self.labels.union(labels))
        return size <= MAX_LABELS and size - self.fewest <= SPARE_LABELS
