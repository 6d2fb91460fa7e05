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

from openjev_core.errors import DeadlineExceeded

Alter = Callable[[dict[str, Any]], None]


class LlamaCppDouble:
    """Takes ``POST /completion`` and ``GET /health``, in the place of an :class:`HttpClient`.

    Attributes:
        keeps: What a slot keeps of its cache for a new prompt: ``agreeing``, all that the two agree in; ``whole``, the
            whole cache where the prompt goes on from it, as recurrent layers do; or ``nothing``.
        asked: Every completion's body.
        computed: Tokens computed so far.
        hold: Completions wait for it when it is set.
        alter: Changes an answer before it is sent.
        too_late: No answer comes in time.
        health: The page of that name.
    """

    def __init__(self, *, keeps: Literal["agreeing", "whole", "nothing"] = "agreeing") -> None:
        self.keeps = keeps
        self.asked: list[dict[str, Any]] = []
        self.computed = 0
        self.hold: asyncio.Event | None = None
        self.alter: Alter = lambda _: None
        self.too_late = False
        self.health = b'{"status": "ok"}'
        self._caches: dict[int, list[tuple[int, int]]] = {}

    def foreign_call(self, slot: int, prompt: list[int]) -> None:
        """What another client of the server does to a slot."""
        self._caches[slot] = [(token, 0) for token in prompt]

    async def send_within(self, seconds: float | None, _method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        if path == "health":
            return 200, self.health
        asked = json.loads(body)
        self.asked.append(asked)
        await asyncio.sleep(0)  # others get their turn, as while a true server computes
        if self.hold is not None:
            await self.hold.wait()
        if self.too_late:
            raise DeadlineExceeded(f"llama.cpp did not answer within {seconds} s")
        answer = self.complete(asked)
        self.alter(answer)
        return 200, json.dumps(answer).encode()

    async def aclose(self) -> None:
        """There is nothing to close."""

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
