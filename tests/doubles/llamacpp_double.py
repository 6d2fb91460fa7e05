"""A llama.cpp server without a model: its slots' caches, and numbers that show how a prompt was split over calls.

What a slot computes of a prompt it computes in one go. The double notes for every token where its call began, and the
probabilities that it answers are drawn from the whole of these notes: two answers agree only when both prompts and
both splits do, which is what the real engine's rounding makes of it in the worst case.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from typing import Any, Literal

import httpx

Alter = Callable[[dict[str, Any]], None]


class LlamaCppDouble:
    """Takes ``POST /completion`` and ``GET /health``.

    Attributes:
        keeps: What a slot keeps of its cache for a new prompt: ``agreeing``, all that the two agree in; ``whole``, the
            whole cache where the prompt goes on from it, as recurrent layers do; or ``nothing``.
        asked: Every completion's body.
        computed: Tokens computed so far.
        hold: Completions wait for it when it is set.
        alter: Changes an answer before it is sent.
        too_late: Raised instead of an answer, as by a client that no longer waits.
    """

    def __init__(self, *, keeps: Literal["agreeing", "whole", "nothing"] = "agreeing") -> None:
        self.keeps = keeps
        self.asked: list[dict[str, Any]] = []
        self.computed = 0
        self.hold: asyncio.Event | None = None
        self.alter: Alter = lambda _: None
        self.too_late: httpx.TimeoutException | None = None
        self._caches: dict[int, list[tuple[int, int]]] = {}

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self.handle)

    def foreign_call(self, slot: int, prompt: list[int]) -> None:
        """What another client of the server does to a slot."""
        self._caches[slot] = [(token, 0) for token in prompt]

    async def handle(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/health":
            return httpx.Response(200, json={"status": "ok"})
        body = json.loads(request.content)
        self.asked.append(body)
        await asyncio.sleep(0)  # others get their turn, as while a true server computes
        if self.hold is not None:
            await self.hold.wait()
        if self.too_late is not None:
            raise self.too_late
        answer = self.complete(body)
        self.alter(answer)
        return httpx.Response(200, json=answer)

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt, cache = body["prompt"], self._caches.get(body["id_slot"], [])
        kept = 0
        if body["cache_prompt"]:
            while kept < min(len(prompt), len(cache)) and cache[kept][0] == prompt[kept]:
                kept += 1
            if self.keeps == "nothing" or (self.keeps == "whole" and kept < len(cache)):
                kept = 0
            # Something has to be computed for there to be an output.
            kept = min(kept, len(prompt) - 1)
        cache = cache[:kept] + [(token, kept) for token in prompt[kept:]]
        self._caches[body["id_slot"]] = cache
        self.computed += len(prompt) - kept
        answer = {
            "tokens_evaluated": len(prompt),
            "tokens_predicted": 1,
            "timings": {"prompt_n": len(prompt) - kept, "cache_n": kept},
        }
        if "logit_bias" in body:
            labels = [label for label, _ in body["logit_bias"]]
            draw = random.Random(repr(cache))
            weights = {label: draw.random() for label in labels}
            ranked = sorted(labels, key=weights.__getitem__, reverse=True)
            top = [{"id": label, "prob": weights[label] / sum(weights.values())} for label in ranked]
            answer["completion_probabilities"] = [{**top[0], "top_probs": top}]
        return answer
