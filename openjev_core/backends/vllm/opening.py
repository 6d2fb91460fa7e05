"""From a URL to a backend, and what is checked of a running vLLM before its answers are served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import msgspec
import orjson

from openjev_core.backends.http_client import OK, PAGE_TIMEOUT, HttpClient
from openjev_core.backends.protocol import Branch, Tokenizer
from openjev_core.backends.replies import decode, refusal
from openjev_core.backends.served_model import (
    BUSY_TIMEOUT,
    NOT_REPORTED,
    TRICKY,
    longest_line,
    model_line,
    same_files,
)
from openjev_core.backends.slots import Slots
from openjev_core.backends.vllm.backend import VLLMBackend
from openjev_core.backends.vllm.wire import NEEDED, VLLMFacts, facts_of
from openjev_core.backends.warmth import CHECKPOINT, Warmth
from openjev_core.errors import BackendError, BackendUnavailable, DeadlineExceeded, StartupError
from openjev_core.settings import Settings

PROOF_PREFIX = (0, 1)
PROOF_BRANCHES = (Branch((2,), (1, 2)), Branch((3,), (1, 2)))
PROOF_TIMEOUT = 120.0
"""Seconds for the first read: a server that has compiled nothing yet took 63 on a busy CPU."""


class Tokens(msgspec.Struct):
    """What ``/tokenize`` answers."""

    tokens: list[int]


TOKENS = msgspec.json.Decoder(Tokens)


@asynccontextmanager
async def open_vllm(
    url: str, settings: Settings, *, vocab_size: int, inspect: bool = True
) -> AsyncIterator[VLLMBackend]:
    """Connect to a running vLLM or to a router in front of several; the connections close with the block.

    Args:
        url: Its base address.
        settings: Fan-out, slots, the branch limit and the backend's key.
        vocab_size: Of the tokenizer that makes the ids.
        inspect: Ask the server for its facts and prove that it reads labels. Without, nothing is sent, and the limits
            are those of the settings.

    Raises:
        StartupError: With ``inspect``, nothing answers at ``url``, or what does is no vLLM that reads labels.
    """
    backend = VLLMBackend(
        http=HttpClient("vLLM", url.rstrip("/"), settings.backend_api_key),
        vocab_size=vocab_size,
        max_prompt_tokens=settings.max_input_tokens - 1,
        fanout=settings.fanout,
        slots=Slots(settings.max_concurrent_branches),
    )
    try:
        if inspect:
            backend.facts = await facts_at(backend.http)
            if backend.facts.max_model_len is not None:
                backend.max_prompt_tokens = backend.facts.max_model_len - 1
            backend.warmth = Warmth(max(CHECKPOINT, backend.facts.block_size or 0))
            await prove(backend)
        yield backend
    finally:
        await backend.aclose()


async def facts_at(http: HttpClient) -> VLLMFacts:
    """What the server's pages say.

    Raises:
        StartupError: Nothing answers, or no model is served there.
    """
    try:
        version, models = await http.page("version"), await http.page("v1/models")
        status, metrics = await http.send_within(PAGE_TIMEOUT, "GET", "metrics")
    except (BackendUnavailable, DeadlineExceeded) as error:
        raise StartupError(
            f"reachable: expected a vLLM at {http.url}, found: {error}. Start it, or give its address with --connect"
        ) from None
    facts = facts_of(version, models, metrics.decode("utf-8", "replace") if status == OK else "")
    if facts.model is None:
        raise StartupError(
            f"reachable: expected a vLLM at {http.url} whose /v1/models names a model of its own, found none; where it "
            "wants a key, OPENJEV_BACKEND_API_KEY must be its --api-key"
        )
    return facts


async def prove(backend: VLLMBackend) -> None:
    """Read a prefix and two branches behind it.

    Raises:
        StartupError: The server does not answer, or is too old to read labels.
    """
    try:
        async with asyncio.timeout(PROOF_TIMEOUT), backend.prefix(PROOF_PREFIX, key="openjev-proof") as prefix:
            await prefix.read(PROOF_BRANCHES)
    except (BackendError, TimeoutError) as error:
        why = str(error) or f"none within {PROOF_TIMEOUT:g} s"
        version = f"vLLM {backend.facts.version or f'(version {NOT_REPORTED})'}"
        raise StartupError(
            f"probe: expected the logprobs of two labels from {backend.http.url}, which vLLM {NEEDED} and newer "
            f"answer, found {version} and: {why}"
        ) from None


def fact_lines(facts: VLLMFacts, *, url: str, tokenizer: str, max_input_tokens: int) -> Iterator[str]:
    """One line for a person per check that passes.

    Args:
        facts: What the server says of itself.
        url: Where it is.
        tokenizer: Where this side's tokenizer comes from: a directory or a Hugging Face name.
        max_input_tokens: The longest branch that is promised to clients, its output token included.

    Raises:
        StartupError: A check failed: says what was expected, what was found and how to change it.
    """
    yield f"reachable: vLLM {facts.version or f'(version {NOT_REPORTED})'}, at {url}"
    yield model_line(facts.root, facts.root, tokenizer)
    if facts.prefix_cache is False:
        raise StartupError(
            "prefix cache: expected it on, found it off, so that every branch would compute the state anew; start vLLM "
            "without --no-enable-prefix-caching"
        )
    state = NOT_REPORTED if facts.prefix_cache is None else "on"
    yield f"prefix cache: {state}, block size {facts.block_size or NOT_REPORTED}"
    longest = None if facts.max_model_len is None else facts.max_model_len - 1
    yield longest_line(longest, max_input_tokens, f"vLLM with --max-model-len {max_input_tokens}")


def tokenizer_is_proven(facts: VLLMFacts, tokenizer: str) -> bool:
    """Whether the server's tokenizer was compared with this side's file by file, and not by its name."""
    return facts.root is not None and bool(same_files(facts.root, tokenizer))


async def tokens_line(backend: VLLMBackend, tokenizer: Tokenizer) -> str:
    """Whether the server makes the same tokens of a text as this side does, in a line for a person.

    Two models of one name may differ in their tokenizers, and ids of the one are nonsense to the other: it would
    answer all the same.

    Raises:
        StartupError: The server makes other tokens of a text, or does not answer.
    """
    named = {} if backend.facts.model is None else {"model": backend.facts.model}
    body = orjson.dumps({**named, "prompt": TRICKY, "add_special_tokens": False})
    try:
        status, content = await backend.http.send_within(BUSY_TIMEOUT, "POST", "tokenize", body)
    except (BackendUnavailable, DeadlineExceeded) as error:
        raise StartupError(f"tokens: expected an answer to a text from {backend.http.url}, found: {error}") from None
    try:
        if status != OK:
            raise refusal("vLLM", status, content)
        theirs: Tokens = decode(TOKENS, content, server="vLLM", path="/tokenize")
    except BackendError as error:
        return f"tokens: not compared, the server takes no text ({error})"
    ours = tokenizer.encode(TRICKY)
    if theirs.tokens != ours:
        raise StartupError(
            f"tokens: expected a server that makes the same {len(ours)} tokens of a text as the tokenizer here, found "
            f"one that makes {len(theirs.tokens)}, or others: it has another tokenizer; name its own with --model"
        )
    return f"tokens: a text of {len(TRICKY)} characters is the same {len(ours)} tokens on both sides"
