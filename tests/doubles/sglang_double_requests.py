"""How the two front ends read the body of ``/generate``, and what they refuse."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Literal
from uuid import uuid4

import numpy as np
import orjson
from sglang_double_model import pack

Member = tuple[str, list[int], bytes, list[int]]
"""A rid, a prompt, the same packed, and the labels asked for."""

SAMPLING_FIELDS = {"max_new_tokens", "temperature", "top_p", "top_k", "ignore_eos", "n"}


class Refusal(Exception):
    """A call that does not reach the scheduler, or kills it."""

    def __init__(self, message: str, status: int = 400, *, style: str = "error", fatal: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.style = style
        self.fatal = fatal

    def body(self, frontend: str) -> bytes:
        """The answer's body."""
        if self.status == 500:
            return b"Internal Server Error"
        if frontend == "rust":
            return orjson.dumps({"error": {"message": self.message, "code": self.status}})
        if self.style == "validation":
            whole = {"object": "error", "message": self.message, "type": "Bad Request", "param": None}
            return orjson.dumps({**whole, "code": self.status})
        return orjson.dumps({"error": {"message": self.message}})

    @property
    def content_type(self) -> str:
        """Its content type."""
        return "text/plain; charset=utf-8" if self.status == 500 else "application/json"


def read_members(
    raw: bytes,
    frontend: Literal["rust", "python"],
    vocab_size: int,
    context: int,
    tokenize: Callable[[str], list[int]] | None = None,
) -> tuple[dict[str, Any], bool, list[Member]]:
    """The body, whether it is a batch, and its members.

    Raises:
        Refusal: The front end answers an error, or dies of it.
    """
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Refusal(f"Failed to parse the request body as JSON: {error}", style="validation") from None
    if not isinstance(body, dict) or not ("input_ids" in body or "text" in body):
        raise Refusal("Either text, input_ids or input_embeds should be provided.")
    ids = body["input_ids"] if "input_ids" in body else ids_of_text(body["text"], vocab_size, tokenize)
    if not ids:
        raise Refusal("input_ids cannot be empty.")
    batch = isinstance(ids[0], list)
    prompts: list[list[int]] = ids if batch else [ids]
    check_sampling(body.get("sampling_params", {}), frontend)
    packed = [checked_prompt(prompt, row, frontend, vocab_size) for row, prompt in enumerate(prompts)]
    oversized = next((prompt for prompt in prompts if len(prompt) >= context), None)
    if oversized is not None and (not batch or frontend == "python"):
        raise Refusal(
            f"The input ({len(oversized)} tokens) is longer than the model's context length ({context} tokens)."
        )
    rids = read_rids(body.get("rid"), len(prompts), batch)
    labels = read_labels(body, len(prompts), batch, frontend, vocab_size)
    return body, batch, list(zip(rids, prompts, packed, labels, strict=True))


def ids_of_text(text: Any, vocab_size: int, tokenize: Callable[[str], list[int]] | None) -> Any:
    """Ids for a text or a list of texts: without a tokenizer, a word is a token, whatever the word."""
    if isinstance(text, list):
        return [ids_of_text(one, vocab_size, tokenize) for one in text]
    if tokenize is not None:
        return tokenize(str(text))
    return [zlib.crc32(word.encode()) % vocab_size for word in str(text).split()]


def check_sampling(sampling: Any, frontend: str) -> None:
    """Unknown fields."""
    for one in sampling if isinstance(sampling, list) else [sampling]:
        unknown = set(one) - SAMPLING_FIELDS
        if unknown:
            raise Refusal(f"sampling_params: unknown field {sorted(unknown)}", 400 if frontend == "rust" else 500)
        if one.get("temperature", 0) < 0:
            raise Refusal(f"temperature must be a non-negative finite number, got {one['temperature']}.")
        if one.get("max_new_tokens", 1) < 0:
            raise Refusal(f"max_new_tokens must be at least 0, got {one['max_new_tokens']}.")


def checked_prompt(prompt: Any, row: int, frontend: str, vocab_size: int) -> bytes:
    """A prompt's packed ids, its types and vocabulary checked: an id outside kills the Python front end's server."""
    if not isinstance(prompt, list):
        raise Refusal(f"row {row}: must be list; got {type(prompt).__name__}", style="validation")
    try:
        packed = pack(prompt)
        inside = bool(np.frombuffer(packed, np.uint32).max(initial=0) < vocab_size)
    except TypeError:
        found = next(type(one).__name__ for one in prompt if not isinstance(one, int))
        raise Refusal(f"elements must be int or list; got {found}", style="validation") from None
    except OverflowError:
        inside = False
    if not inside:
        message = f"input_ids contains out-of-vocabulary token ids; valid range is [0, {vocab_size})"
        raise Refusal(message, fatal=frontend == "python")
    return packed


def read_rids(rid: Any, size: int, batch: bool) -> list[str]:
    """One rid per member."""
    if rid is None:
        return [uuid4().hex for _ in range(size)]
    if isinstance(rid, str):
        return [f"{rid}_{i}" for i in range(size)] if batch else [rid]
    if len(rid) != size:
        raise Refusal("The specified rids length mismatch with the batch_size for batch processing.")
    doubled = sorted({one for one in rid if rid.count(one) > 1}) if len(set(rid)) < len(rid) else []
    if doubled:
        raise Refusal(f"Duplicate request IDs detected within the request: {doubled}")
    return list(rid)


def read_labels(body: dict[str, Any], size: int, batch: bool, frontend: str, vocab_size: int) -> list[list[int]]:
    """One list of labels per member; silently none without ``return_logprob``."""
    asked = body.get("token_ids_logprob")
    if not body.get("return_logprob") or asked is None:
        return [[] for _ in range(size)]
    nested = bool(asked) and isinstance(asked[0], list)
    if nested and not batch and frontend == "python":
        raise Refusal("token_ids_logprob must be a flat list of integers.")
    if nested and len(asked) != size:
        raise Refusal(
            f"token_ids_logprob list length {len(asked)}, batch size {size}", 400 if frontend == "rust" else 500
        )
    labels: list[list[int]] = asked if nested else [asked] * size
    if any(not 0 <= label < vocab_size for one in labels for label in one):
        raise Refusal(f"token_ids_logprob contains an out-of-vocabulary token id; valid range is [0, {vocab_size})")
    return labels
