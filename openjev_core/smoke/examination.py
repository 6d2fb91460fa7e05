"""What a check works with: the server, what is known of it, and requests whose envelope is verified."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from openjev_core.smoke.answers import Question, check_answer
from openjev_core.smoke.calls import Call, Service
from openjev_core.smoke.expectations import expect, header_integer, integer, json_of, object_with

PATH = "/v1/systemone"
BUSY = (429, 503, 529)
TRIES = 4
LONGEST_PAUSE = 5.0
"""Seconds; a ``Retry-After`` that asks for more gets no more."""

LIMITS = (
    "max_questions",
    "max_answers_per_question",
    "max_body_bytes",
    "max_input_tokens",
    "max_total_input_tokens",
    "max_concurrent_requests",
    "max_concurrent_branches",
)


class Examination:
    """One server under examination.

    Args:
        service: Makes the calls.
        model: The model that the server says it serves.

    Attributes:
        calls: Made since the current check began.
        limits: What ``/v1/limits`` said; empty before it was asked.
        notes: What a person should know.
    """

    def __init__(self, service: Service, model: str) -> None:
        self.service = service
        self.model = model
        self.calls: list[Call] = []
        self.limits: Mapping[str, int] = {}
        self.notes: list[str] = []

    async def get(self, path: str) -> Any:
        """The JSON of a GET that succeeds."""
        call = await self.service.call("GET", path)
        self.calls.append(call)
        return json_of(call, 200)

    async def post(self, body: Any) -> Call:
        """Send an evaluation. A server that is busy is asked again, as its clients would; every try is recorded."""
        for left in reversed(range(TRIES)):
            call = await self.service.call("POST", PATH, body)
            self.calls.append(call)
            if call.status not in BUSY or call.fault is not None or left == 0:
                break
            await asyncio.sleep(pause_before_retry(call))
        return call

    async def evaluate(self, state: Any, questions: Mapping[str, Question]) -> dict[str, Any]:
        """The answers to questions about a state, each verified as one to its question."""
        call = await self.post({"model": "jev-latest", "state": state, "questions": dict(questions)})
        reply = object_with(json_of(call, 200), "the reply", required=("model", "answers", "usage"))
        expect(reply["model"] == self.model, f"model to be {self.model}, as /health says", reply["model"])
        usage = object_with(reply["usage"], "usage", required=("input_tokens", "output_tokens"))
        integer(usage["input_tokens"], "usage.input_tokens", 1)
        # One output token per branch and one for the warm-up; a question of several readouts has several branches.
        integer(usage["output_tokens"], "usage.output_tokens", len(questions) + 1)
        expect(header_integer(call, "x-openjev-prefix-tokens") is not None, "a header x-openjev-prefix-tokens", "none")
        header_integer(call, "x-openjev-cached-tokens")
        answers = reply["answers"]
        expect(isinstance(answers, dict), "answers to be an object", answers)
        expect(list(answers) == list(questions), f"answers to {list(questions)}, in this order", list(answers))
        for question_id, question in questions.items():
            check_answer(question, answers[question_id])
        return dict(answers)

    async def ask(self, state: Any, question: Question) -> dict[str, Any]:
        """The answer to one question."""
        answers = await self.evaluate(state, {"q": question})
        answer: dict[str, Any] = answers["q"]
        return answer

    async def limit(self, name: str) -> int:
        """One of the server's limits."""
        if not self.limits:
            limits = object_with(await self.get("/v1/limits"), "limits", required=LIMITS)
            self.limits = {key: integer(limits[key], key, 1) for key in LIMITS}
        return self.limits[name]


def pause_before_retry(call: Call) -> float:
    """Seconds to wait before a busy server is asked again."""
    try:
        asked = float(call.headers.get("retry-after", "1"))
    except ValueError:
        asked = 1.0
    return min(max(asked, 0.0), LONGEST_PAUSE) if asked == asked else 1.0  # noqa: PLR0124 - NaN is not itself
