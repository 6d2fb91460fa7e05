"""What the vLLM double refuses, what it answers, and what goes wrong with an answer when a test asks for it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson
from attrs import define
from sglang_double_http import HttpRequest
from sglang_double_model import logprob_of_packed

if TYPE_CHECKING:
    from vllm_double import VLLMDouble

MOST_LABELS = 128
SAMPLED = 40_000
"""The token that is sampled, whatever the prompt."""


class Refusal(Exception):
    """A call that does not reach the scheduler."""

    def __init__(self, message: str, status: int = 400, param: str | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.param = message, status, param

    def body(self) -> bytes:
        """The answer's body."""
        kind = "NotFoundError" if self.status == 404 else "BadRequestError"
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.status}
        return orjson.dumps({"error": error})


def check_model(body: dict[str, Any], model: str) -> None:
    """Refuse a name of another model."""
    if body.get("model", model) != model:
        raise Refusal(f"The model `{body['model']}` does not exist. Valid aliases: {model}.", 404, "model")


def checked_prompts(body: dict[str, Any], vocab_size: int, max_model_len: int) -> list[list[int]]:
    """The prompts of a call.

    Raises:
        Refusal: One is empty, too long, or holds an id that there is not.
    """
    sent = body["prompt"]
    prompts: list[list[int]] = sent if sent and isinstance(sent[0], list) else [sent]
    for prompt in prompts:
        if not prompt:
            raise Refusal("The decoder prompt cannot be empty")
        outside = next((token for token in prompt if not 0 <= token < vocab_size), None)
        if outside is not None:
            raise Refusal(f"Token id {outside} is out of vocabulary")
        if len(prompt) > max_model_len:
            raise Refusal(
                f"This model's maximum context length is {max_model_len} tokens. However, your prompt contains "
                f"{len(prompt)} input tokens, which exceeds this limit even without any output tokens. Please reduce "
                f"the length of the input prompt. (parameter=input_tokens, value={len(prompt)})",
                param="input_tokens",
            )
        if len(prompt) == max_model_len:
            raise Refusal("max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)", param="max_tokens")
    return prompts


def checked_labels(body: dict[str, Any], vocab_size: int) -> list[int]:
    """The labels of a call.

    Raises:
        Refusal: They are too many, or one is no id, or log-probabilities are not asked for.
    """
    labels: list[int] = body.get("logprob_token_ids") or []
    name = "logprob_token_ids"
    if labels and body.get("logprobs") is None:
        raise Refusal(f"when using `{name}`, `logprobs` must be set. (parameter={name})", param=name)
    if len(labels) > MOST_LABELS:
        raise Refusal(
            f"Requested {name} of length {len(labels)}, which is greater than max allowed: {MOST_LABELS} "
            f"(parameter={name}, value={len(labels)})",
            param=name,
        )
    outside = [label for label in labels if not 0 <= label < vocab_size]
    if outside:
        raise Refusal(
            f"token_id(s) {outside} in {name} contain out-of-vocab token ids. Vocabulary size: {vocab_size} "
            f"(parameter={name}, value={outside})",
            param=name,
        )
    return labels


def answer_of(prompts: list[list[int]], hashes: list[int], labels: list[int], model: str) -> dict[str, Any]:
    """The answer to a call."""
    choices = []
    for index, hashed in enumerate(hashes):
        read = {f"token_id:{label}": logprob_of_packed(hashed, label) for label in labels}
        logprobs = {
            "text_offset": [0],
            "token_logprobs": [-1.25],
            "tokens": [f"token_id:{SAMPLED}"],
            "top_logprobs": [{f"token_id:{SAMPLED}": -1.25, **read}],
        }
        empty = dict.fromkeys(("stop_reason", "token_ids", "prompt_logprobs", "prompt_token_ids", "routed_experts"))
        choices.append({"index": index, "text": "\n", "logprobs": logprobs, "finish_reason": "length", **empty})
    tokens, count = sum(map(len, prompts)), len(prompts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens + count, "completion_tokens": count}
    return {
        "id": "cmpl-a0a987b551cc9fb3",
        "object": "text_completion",
        "created": 0,
        "model": model,
        "choices": choices,
        "service_tier": None,
        "system_fingerprint": "vllm-0.32.0-6200ef99",
        "usage": {**usage, "prompt_tokens_details": None, "completion_tokens_details": None},
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "metrics": None,
    }


@define
class Fault:
    """What goes wrong, with which calls, how often.

    Attributes:
        kind: What: a name among :data:`CHANGES`, or one that :func:`strike` or :meth:`answer` knows.
        stage: ``warm``: calls that ask for one label, ``branch``: for more, or ``any``.
        times: How many calls.
        seconds: How slow, for ``slow``.
    """

    kind: str
    stage: str = "any"
    times: int = 1
    seconds: float = 0.0

    def answer(self, request: HttpRequest, answer: dict[str, Any]) -> bool:
        """Change an answer, or give another one; whether it has been given."""
        if self.kind in CHANGES:
            CHANGES[self.kind](answer)
        content = orjson.dumps(answer)
        match self.kind:
            case "nan" | "minus_infinity":  # as Python's own encoder writes them
                first = "token_id:7" if "token_id:7" in top_of(answer) else f"token_id:{SAMPLED}"
                top_of(answer)[first] = math.nan if self.kind == "nan" else -math.inf
                request.answer(200, json.dumps(answer).encode())
            case "truncated":
                request.answer_partly(content[: len(content) // 2], len(content))
            case _:
                return False
        return True


def struck(faults: list[Fault], labels: int) -> Fault | None:
    """The fault that strikes a call with so many labels; it counts."""
    for fault in faults:
        if fault.times and (fault.stage == "any" or (fault.stage == "warm") == (labels == 1)):
            fault.times -= 1
            return fault
    return None


INSTEAD: dict[str, tuple[int, bytes]] = {
    "garbage": (200, b"\xff\xfe{not json"),
    "page": (200, b"<html><body>Welcome</body></html>"),
    "other": (200, b'{"object":"list","data":[]}'),
    "text_500": (500, b"Internal Server Error"),
    "queue_full": (503, b'{"error":{"message":"The server is overloaded","type":"x","param":null,"code":503}}'),
    "refused": (400, Refusal("max_tokens must be at least 1, got 0.").body()),
    "redirect": (307, b""),
}
"""What is answered instead of an answer."""


def strike(double: VLLMDouble, request: HttpRequest, fault: Fault) -> bool:
    """Faults that keep a call from the scheduler; whether this is one."""
    if fault.kind in INSTEAD:
        request.answer(*INSTEAD[fault.kind])
    elif fault.kind == "reset":
        request.drop()
    elif fault.kind == "die":
        double.stop()
    else:
        return fault.kind == "hang"
    return True


def top_of(answer: dict[str, Any], index: int = -1) -> dict[str, Any]:
    """The log-probabilities of one prompt."""
    top: dict[str, Any] = answer["choices"][index]["logprobs"]["top_logprobs"][0]
    return top


def without_first(top: dict[str, Any]) -> None:
    """Take the first label out."""
    del top[next(name for name in top if name != f"token_id:{SAMPLED}")]


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "missing": lambda answer: without_first(top_of(answer)),
    "impossible": lambda answer: top_of(answer).update({"token_id:7": -9999.0}),
    "null": lambda answer: top_of(answer).update({"token_id:7": None}),
    "logits": lambda answer: top_of(answer).update(dict.fromkeys(top_of(answer), 20.0)),
    "no_logprobs": lambda answer: answer["choices"][-1].update(logprobs=None),
    "no_position": lambda answer: answer["choices"][-1]["logprobs"].update(top_logprobs=[]),
    "two_positions": lambda answer: answer["choices"][-1]["logprobs"]["top_logprobs"].append({}),
    "swapped": lambda answer: answer["choices"].reverse(),
    "short": lambda answer: answer["choices"].pop(),
    "twice": lambda answer: answer["choices"][-1].update(index=0),
    "foreign": lambda answer: answer["choices"][-1].update(index=99),
    "more": lambda answer: answer["choices"].append({**answer["choices"][-1], "index": len(answer["choices"])}),
    "cut_short": lambda answer: answer["usage"].update(prompt_tokens=answer["usage"]["prompt_tokens"] - 1),
    "no_usage": lambda answer: answer.pop("usage"),
    "longer": lambda answer: answer["usage"].update(completion_tokens=50),
    "summed": lambda answer: answer["usage"]["prompt_tokens_details"].update(cached_tokens=3 * 592),
    "too_cached": lambda answer: answer["usage"].update(prompt_tokens_details={"cached_tokens": 10**9}),
    "aborted": lambda answer: answer["choices"][-1].update(finish_reason="abort", logprobs=None),
}
"""Changes to an answer."""
