"""The shapes of SGLang's HTTP: bodies of ``/generate``, their answers, checked against what was asked, and pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from attrs import frozen
from msgspec import Struct

from openjev_core.backends.protocol import Branch, Reading
from openjev_core.backends.replies import decode, message_of
from openjev_core.distribution import label_mass
from openjev_core.errors import BackendError, BackendUnavailable

# Every call asks for a label's logprob, warm-ups and checks too: in one batch with labelled calls, a plain one kills
# the scheduler of SGLang 0.5.19. `logprob_start_len` -1 reads the output position alone; 0 would compute a cached
# prefix again.
FIXED_FIELDS = (
    b'"sampling_params":{"max_new_tokens":1,"temperature":0},'
    b'"return_logprob":true,"logprob_start_len":-1,"top_logprobs_num":0}'
)

PATH = "/generate"
PROMPT_SLACK = 7
"""The longest prompt is the context length less this (measured on 0.5.19, both front ends)."""


class Meta(Struct):
    """What an answer says about its call. Fields that a front end leaves out are ``None``."""

    id: str
    finish_reason: dict[str, Any] | None = None
    prompt_tokens: int | None = None
    completion_tokens: int = 1
    cached_tokens: int | None = None
    output_token_ids_logprobs: list[list[tuple[float | None, int, Any]]] | None = None


class Element(Struct):
    """One prompt's answer: what was read, or, in a batch on the Rust front end, why it was not."""

    meta_info: Meta | None = None
    error: dict[str, Any] | None = None


ONE = msgspec.json.Decoder(Element)
MANY = msgspec.json.Decoder(list[Element])


def single_body(prompt: bytes, labels: bytes, rid: str) -> bytes:
    """The body for one prompt, given as the inside of a JSON array; the labels are an array."""
    return b'{"rid":"%b","input_ids":[%b],"token_ids_logprob":%b,%b' % (rid.encode(), prompt, labels, FIXED_FIELDS)


def batch_body(before: bytes, branches: Sequence[Branch], rid: str) -> bytes:
    """The body for several branches of one prefix, given as the beginning of a JSON array's inside.

    SGLang calls them ``rid_0``, ``rid_1``, ...
    """
    return b'{"rid":"%b","input_ids":[%b],"token_ids_logprob":[%b],%b' % (
        rid.encode(),
        b",".join([b"[%b%b]" % (before, branch.suffix_json) for branch in branches]),
        b",".join([branch.labels_json for branch in branches]),
        FIXED_FIELDS,
    )


def text_body(text: bytes, rid: str) -> bytes:
    """The body for a prompt that SGLang tokenizes itself, given as a JSON string."""
    return b'{"rid":"%b","text":%b,"token_ids_logprob":[0],%b' % (rid.encode(), text, FIXED_FIELDS)


def parse_one(body: bytes) -> Element:
    """The answer to a single prompt.

    Raises:
        BackendError: It is not what ``/generate`` returns.
    """
    element: Element = decode(ONE, body, server="SGLang", path=PATH)
    return element


def parse_many(body: bytes, size: int) -> list[Element]:
    """The answer to a batch of ``size`` prompts.

    Raises:
        BackendError: It is not what ``/generate`` returns for that many.
    """
    elements: list[Element] = decode(MANY, body, server="SGLang", path=PATH)
    if len(elements) != size:
        raise BackendError(f"SGLang answered {len(elements)} prompts of a batch of {size}")
    return elements


def read_element(element: Element, labels: tuple[int, ...], *, rid: str, prompt_tokens: int) -> Reading:
    """The reading in one prompt's answer.

    Args:
        element: The answer.
        labels: The label ids that were asked for, distinct.
        rid: The call's id, which the answer must bear.
        prompt_tokens: The prompt's length, which the answer must confirm: SGLang can be told to cut prompts short.

    Raises:
        BackendError: A label is missing or doubled; all are null; or the answer belongs to another prompt. A NaN is
            left to what reads answers of all backends.
        BackendUnavailable: SGLang dropped the call.
    """
    if element.error is not None:
        raise BackendError(f"SGLang refused a prompt: {message_of(element.error)}")
    meta = element.meta_info
    if meta is None:
        raise BackendError("SGLang's answer is not what /generate returns: it has no meta_info")
    reason = meta.finish_reason or {}
    if reason.get("type") == "abort":
        raise BackendUnavailable(f"SGLang dropped the call: {message_of(reason)}")
    if meta.id != rid:
        raise BackendError(f"SGLang answered request {meta.id!r} where {rid!r} was due")
    if meta.prompt_tokens != prompt_tokens:
        found = "no prompt count" if meta.prompt_tokens is None else f"{meta.prompt_tokens} prompt tokens"
        raise BackendError(f"SGLang's answer reports {found}, sent were {prompt_tokens}")
    if meta.completion_tokens != 1:
        raise BackendError(f"SGLang's answer reports {meta.completion_tokens} output tokens, asked was 1")
    if meta.cached_tokens is not None and not 0 <= meta.cached_tokens <= prompt_tokens:
        raise BackendError(f"SGLang's answer reports {meta.cached_tokens} cached tokens of {prompt_tokens}")
    logprobs = label_logprobs(meta.output_token_ids_logprobs, labels)
    return Reading(logprobs, prompt_tokens, meta.cached_tokens, label_mass=label_mass(logprobs))


def label_logprobs(
    positions: list[list[tuple[float | None, int, Any]]] | None, labels: tuple[int, ...]
) -> tuple[float, ...]:
    """The logprobs of ``labels``, matched by id; ``null`` beside real values is a probability of zero.

    SGLang's encoder writes every non-finite number as ``null``. One NaN makes the whole softmax NaN, so a null with a
    number beside it can only have been minus infinity; nulls alone may have been anything.
    """
    if not positions:
        raise BackendError("SGLang's answer has no output_token_ids_logprobs: it ignored the labels")
    if len(positions) != 1:
        raise BackendError(f"SGLang's answer has logprobs for {len(positions)} output positions, asked was 1")
    found = {token: value for value, token, _ in positions[0]}
    if len(found) != len(positions[0]):
        raise BackendError("SGLang's answer has two logprobs for one label")
    missing = [label for label in labels if label not in found]
    if missing:
        raise BackendError(f"SGLang's answer has no logprob for the label ids {missing[:8]}")
    values = [found[label] for label in labels]
    if values.count(None) == len(values):
        raise BackendError("SGLang's answer has null for every label, so there is no distribution over them")
    return tuple([-math.inf if value is None else value for value in values])


@frozen(kw_only=True)
class SGLangFacts:
    """Selected from ``/server_info`` and ``/model_info``; ``None`` for what is not reported.

    The pages themselves are never kept: ``/server_info`` holds the server's keys in clear text.
    """

    frontend: Literal["python", "rust"] | None = None
    version: str | None = None
    model_path: str | None = None
    tokenizer_path: str | None = None
    served_model_name: str | None = None
    max_prompt_tokens: int | None = None
    page_size: int | None = None
    radix_cache: bool | None = None


def facts_of(server: Mapping[str, Any], model: Mapping[str, Any]) -> SGLangFacts:
    """What the objects of the two pages say; an empty one for a page that is not there."""
    disabled = server.get("disable_radix_cache")
    return SGLangFacts(
        frontend="rust" if "max_context_length" in server else "python" if "context_length" in server else None,
        version=known(server, "version", str),
        model_path=known(model, "model_path", str) or known(server, "model_path", str),
        tokenizer_path=known(model, "tokenizer_path", str) or known(server, "tokenizer_path", str),
        served_model_name=known(model, "served_model_name", str) or known(server, "served_model_name", str),
        max_prompt_tokens=longest_prompt(server),
        page_size=known(server, "page_size", int),
        radix_cache=not disabled if isinstance(disabled, bool) else None,
    )


def known(page: Mapping[str, Any], name: str, kind: type) -> Any:
    """A field of the page, if it is there and of its type."""
    value = page.get(name)
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def longest_prompt(server: Mapping[str, Any]) -> int | None:
    """The smallest of the limits that the page gives."""
    context = known(server, "max_context_length", int) or known(server, "context_length", int)
    accepted = known(server, "max_req_input_len", int)
    pool = known(server, "max_total_num_tokens", int)
    limits = [
        context - PROMPT_SLACK if context else None,
        accepted - 1 if accepted else None,
        pool - 1 if pool else None,
    ]
    return min((limit for limit in limits if limit), default=None)
