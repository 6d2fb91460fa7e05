"""The shapes of vLLM's HTTP: bodies of ``/v1/completions``, their answers checked against what was asked, pages."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import orjson
from attrs import frozen
from msgspec import Struct

from openjev_core.backends.protocol import Branch, Reading
from openjev_core.backends.replies import decode
from openjev_core.distribution import label_mass
from openjev_core.errors import BackendError, BackendUnavailable

PATH = "/v1/completions"
NEEDED = "0.26.0"
"""The first version whose ``/v1/completions`` has ``logprob_token_ids``."""
MAX_LABELS = 128
"""Labels of one call. The values are normalised over the vocabulary, so those of several calls fit together."""
IMPOSSIBLE = -9999.0
"""How vLLM writes minus infinity."""

# `logprobs` has to be there, and its number is ignored. Texts of tokens may be alike, so tokens are named by their ids.
FIXED_FIELDS = (
    b'"max_tokens":1,"temperature":0,"logprobs":0,"return_tokens_as_token_ids":true,"add_special_tokens":false}'
)


class Logprobs(Struct):
    """Of each output position, the log-probabilities of the sampled token and of the labels, by ``token_id:N``."""

    top_logprobs: list[dict[str, float] | None] | None = None


class Choice(Struct):
    """One prompt's part of an answer."""

    index: int
    logprobs: Logprobs | None = None
    finish_reason: str | None = None


class PromptDetails(Struct):
    """What is told of the prompts; only with ``--enable-prompt-tokens-details``."""

    cached_tokens: int | None = None


class CallUsage(Struct):
    """Tokens of all the prompts of a call."""

    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: PromptDetails | None = None


class Completion(Struct):
    """An answer."""

    choices: list[Choice]
    usage: CallUsage | None = None


COMPLETION = msgspec.json.Decoder(Completion)


def body_of(model: str | None, before: bytes, branches: Sequence[Branch], labels: Sequence[int]) -> bytes:
    """The body of a call.

    Args:
        model: The model's name at the server; ``None`` leaves it to a server that has one.
        before: What all prompts begin with, as the beginning of a JSON array's inside; may be empty.
        branches: What follows, one prompt each.
        labels: At most :data:`MAX_LABELS` label ids, which are read after each prompt.
    """
    named = b"" if model is None else b'"model":%b,' % orjson.dumps(model)
    prompts = b",".join([b"[%b%b]" % (before, branch.suffix_json) for branch in branches])
    return b'{%b"prompt":[%b],"logprob_token_ids":%b,%b' % (named, prompts, orjson.dumps(labels), FIXED_FIELDS)


def parse(body: bytes, prompt_tokens: Sequence[int]) -> tuple[list[dict[str, float]], int | None]:
    """The answer to a call.

    Args:
        body: The answer's.
        prompt_tokens: The length of each prompt. The answer must confirm their sum: a server can cut prompts short.

    Returns:
        For each prompt the log-probabilities by ``token_id:N``, and how many tokens of the last one were reused, where
        the server says it.

    Raises:
        BackendError: It is not what ``/v1/completions`` returns for these prompts.
        BackendUnavailable: vLLM dropped the call.
    """
    completion: Completion = decode(COMPLETION, body, server="vLLM", path=PATH)
    count, sent = len(prompt_tokens), sum(prompt_tokens)
    found: dict[int, dict[str, float]] = {}
    for choice in completion.choices:
        if choice.finish_reason == "abort":
            raise BackendUnavailable("vLLM dropped the call")
        positions = choice.logprobs.top_logprobs if choice.logprobs is not None else None
        if not positions or len(positions) != 1 or positions[0] is None:
            raise BackendError("vLLM's answer has no logprobs of one output position")
        if choice.index in found:
            raise BackendError(f"vLLM answered prompt {choice.index} twice")
        found[choice.index] = positions[0]
    if set(found) != set(range(count)):
        raise BackendError(f"vLLM answered the prompts {sorted(found)[:8]} of a call with {count}")
    usage = completion.usage
    if usage is None or usage.prompt_tokens != sent:
        said = "no prompt count" if usage is None else f"{usage.prompt_tokens} prompt tokens"
        raise BackendError(f"vLLM's answer reports {said}, sent were {sent}")
    if usage.completion_tokens != count:
        raise BackendError(f"vLLM's answer reports {usage.completion_tokens} output tokens, asked were {count}")
    cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details is not None else None
    if cached is not None and not 0 <= cached <= sent:
        raise BackendError(f"vLLM's answer reports {cached} cached tokens of {sent}")
    if cached is not None and cached > prompt_tokens[-1]:
        cached = None  # no count of one prompt
    return [found[index] for index in range(count)], cached


def reading_of(found: Mapping[str, float], branch: Branch, *, calls: int, tokens: int, cached: int | None) -> Reading:
    """One branch's reading.

    Args:
        found: Log-probabilities by ``token_id:N``, of all its labels' calls together.
        branch: What was asked.
        calls: How many calls its labels took; all but one are reads of the same prompt again.
        tokens: The prompt's, once.
        cached: Those that were reused, in all calls.

    Raises:
        BackendError: A label is missing, or the log-probabilities are none.
    """
    named = [found.get(f"token_id:{label}") for label in branch.labels]
    missing = [label for label, value in zip(branch.labels, named, strict=True) if value is None]
    if missing:
        raise BackendError(
            f"vLLM's answer has no logprob for the label ids {missing[:8]}; vLLM {NEEDED} or newer is needed, which "
            "takes logprob_token_ids"
        )
    logprobs = tuple([-math.inf if value <= IMPOSSIBLE else value for value in named if value is not None])
    return Reading(logprobs, calls * tokens, cached, output_tokens=calls, label_mass=label_mass(logprobs))


@frozen(kw_only=True)
class VLLMFacts:
    """Selected from ``/version``, ``/v1/models`` and ``/metrics``; ``None`` for what is not reported.

    Attributes:
        version: The server's.
        model: The model's name at the server.
        root: Where the model comes from: a directory or a Hugging Face name.
        max_model_len: Tokens of a prompt with its output.
        prefix_cache: Whether warmed prefixes are kept.
        block_size: Prefixes are kept in blocks of so many tokens.
    """

    version: str | None = None
    model: str | None = None
    root: str | None = None
    max_model_len: int | None = None
    prefix_cache: bool | None = None
    block_size: int | None = None


def facts_of(version: Mapping[str, Any], models: Mapping[str, Any], metrics: str) -> VLLMFacts:
    """What the three pages say; empty ones for those that are not there."""
    served = base_model(models) or {}
    length = served.get("max_model_len")
    line = re.search(r"^vllm:cache_config_info\{(.*)\}", metrics, re.MULTILINE)
    cache = dict(re.findall(r'(\w+)="([^"]*)"', line[1])) if line is not None else {}
    block = cache.get("block_size", "")
    return VLLMFacts(
        version=text_in(version, "version"),
        model=text_in(served, "id"),
        root=text_in(served, "root"),
        max_model_len=length if isinstance(length, int) and length > 1 else None,
        prefix_cache={"True": True, "False": False}.get(cache.get("enable_prefix_caching", "")),
        block_size=int(block) if block.isdecimal() else None,
    )


def base_model(models: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The first model of ``/v1/models`` that is vLLM's own and no adapter of another; ``None`` where there is none."""
    served = models.get("data")
    for model in served if isinstance(served, list) else ():
        if isinstance(model, dict) and model.get("owned_by") == "vllm" and model.get("parent") is None:
            return model
    return None


def text_in(page: Mapping[str, Any], name: str) -> str | None:
    """A field of the page, if it is there and a text."""
    value = page.get(name)
    return value if isinstance(value, str) and value else None
