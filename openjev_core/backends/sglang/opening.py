"""From a URL to a backend, and what is checked of a running SGLang before its answers are served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Literal

import orjson

from openjev_core.backends.protocol import Branch, Tokenizer
from openjev_core.backends.served_model import (
    BUSY_TIMEOUT,
    NOT_REPORTED,
    PLAIN,
    TRICKY,
    longest_line,
    model_line,
    same_files,
)
from openjev_core.backends.sglang.backend import SGLangBackend
from openjev_core.backends.sglang.client import SGLangClient
from openjev_core.backends.sglang.wire import PROMPT_SLACK, SGLangFacts, parse_one, text_body
from openjev_core.backends.slots import Slots
from openjev_core.errors import BackendError, BackendUnavailable, DeadlineExceeded, StartupError
from openjev_core.settings import Settings

PROOF_PREFIX = (0, 1)
PROOF_BRANCHES = (Branch((2,), (0, 1)), Branch((3,), (0, 1)))


@asynccontextmanager
async def open_sglang(
    url: str,
    settings: Settings,
    *,
    vocab_size: int,
    api_key: str | None = None,
    inspect: bool = True,
    log: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[SGLangBackend]:
    """Connect to a running SGLang or to a router in front of several; the connections close with the block.

    Args:
        url: Its base address.
        settings: Fan-out, slots, the branch limit and the backend's key.
        vocab_size: Of the tokenizer that makes the ids.
        api_key: The backend's key, where it is not ``settings.backend_api_key``.
        inspect: Ask the server for its facts and prove that it takes batches. Without, nothing is sent, and the limits
            are those of the settings.
        log: Takes lines for a person.

    Raises:
        StartupError: With ``inspect``, nothing answers at ``url``, or what does is no SGLang.
    """
    client = SGLangClient(url.rstrip("/"), api_key or settings.backend_api_key)
    backend = SGLangBackend(
        client=client,
        vocab_size=vocab_size,
        max_prompt_tokens=settings.max_input_tokens - 1,
        fanout=settings.fanout,
        slots=Slots(settings.max_concurrent_branches),
    )
    try:
        if inspect:
            try:
                backend.facts = await client.facts()
                ready = await client.health(seconds=BUSY_TIMEOUT)
            except (BackendUnavailable, DeadlineExceeded) as error:
                raise StartupError(
                    f"reachable: expected an SGLang at {client.url}, found: {error}. "
                    "Start it, or give its address with --connect"
                ) from None
            if not ready:
                # A call now could meet the server's own first one and kill it: see `Outage`.
                raise StartupError(
                    f"ready: expected an SGLang at {client.url} that is ready, found one that does not say so yet; "
                    "start again when its /health answers 200"
                )
            backend.max_prompt_tokens = backend.facts.max_prompt_tokens or backend.max_prompt_tokens
            backend.fanout = await proven_fanout(backend, log)
        yield backend
    finally:
        await backend.aclose()


async def proven_fanout(backend: SGLangBackend, log: Callable[[str], None]) -> Literal["batch", "calls"]:
    """The configured way to fan out, or ``calls`` where the server does not take batches.

    Raises:
        StartupError: It does not take single calls either.
    """
    try:
        async with asyncio.timeout(BUSY_TIMEOUT), backend.prefix(PROOF_PREFIX, key="openjev-proof") as prefix:
            if backend.fanout == "calls":
                return "calls"
            try:
                await prefix.read(PROOF_BRANCHES)
            except BackendUnavailable:
                raise
            except BackendError as error:
                log(f"fan-out: the server does not take batches ({error}); one call per branch instead")
                return "calls"
    except (BackendError, TimeoutError) as error:
        why = str(error) or f"none within {BUSY_TIMEOUT:g} s"
        raise StartupError(
            f"probe: expected an answer to a labelled one-token call from {backend.client.url}, found: {why}"
        ) from None
    return "batch"


def fact_lines(facts: SGLangFacts, *, url: str, tokenizer: str, max_input_tokens: int) -> Iterator[str]:
    """One line for a person per check that passes.

    Args:
        facts: What the server says of itself.
        url: Where it is.
        tokenizer: Where this side's tokenizer comes from: a directory or a Hugging Face name.
        max_input_tokens: The longest branch that is promised to clients, its output token included.

    Raises:
        StartupError: A check failed: says what was expected, what was found and how to change it.
    """
    frontend = f"{facts.frontend} front end" if facts.frontend else f"front end {NOT_REPORTED}"
    yield f"reachable: SGLang {facts.version or f'(version {NOT_REPORTED})'}, {frontend}, at {url}"
    yield model_line(facts.model_path, facts.tokenizer_path or facts.model_path, tokenizer)
    yield f"prefix cache: {cache_line(facts)}"
    wider = f"SGLang with --context-length {max_input_tokens - 1 + PROMPT_SLACK}"
    yield longest_line(facts.max_prompt_tokens, max_input_tokens, wider)


def tokenizer_is_proven(facts: SGLangFacts, tokenizer: str) -> bool:
    """Whether the server's tokenizer was compared with this side's file by file, and not by its name."""
    theirs = facts.tokenizer_path or facts.model_path
    return theirs is not None and bool(same_files(theirs, tokenizer))


def cache_line(facts: SGLangFacts) -> str:
    """Whether a warmed prefix is kept."""
    if facts.radix_cache is False:
        raise StartupError(
            "prefix cache: expected it on, found it off, so that every branch would compute the state anew; start "
            "SGLang without --disable-radix-cache"
        )
    state = NOT_REPORTED if facts.radix_cache is None else "on"
    return f"{state}, page size {facts.page_size or NOT_REPORTED}"


async def tokens_line(client: SGLangClient, tokenizer: Tokenizer) -> str:
    """Whether the server makes as many tokens of a text as this side does, in a line for a person.

    Two models of one name may differ in their tokenizers, and ids of the one are nonsense to the other: it would
    answer all the same.

    Raises:
        StartupError: The server makes another number of tokens of a text, or does not answer.
    """
    try:
        async with asyncio.timeout(BUSY_TIMEOUT):
            counts = [await count_tokens(client, text) for text in (PLAIN, TRICKY)]
    except (BackendUnavailable, TimeoutError) as error:
        why = str(error) or f"none within {BUSY_TIMEOUT:g} s"
        raise StartupError(f"tokens: expected an answer to a text from {client.url}, found: {why}") from None
    except BackendError as error:
        return f"tokens: not compared, the server takes no text ({error})"
    plain, tricky = counts
    theirs = tricky - plain
    ours = len(tokenizer.encode(TRICKY)) - len(tokenizer.encode(PLAIN))
    if theirs != ours:
        raise StartupError(
            f"tokens: expected a server that makes {ours} tokens more of one text than of another, as the tokenizer "
            f"here does, found one that makes {theirs} more: it has another tokenizer; name its own with --model"
        )
    return f"tokens: a text of {len(TRICKY)} characters is {ours} tokens on both sides"


async def count_tokens(client: SGLangClient, text: str) -> int:
    """How many tokens the server makes of a text.

    Raises:
        BackendError: It does not say.
    """
    rid = client.new_rid()
    body = text_body(orjson.dumps(text), rid)
    answer = await client.generate(body, rids=[rid], routing_key="openjev-tokens")
    meta = parse_one(answer).meta_info
    if meta is None or meta.prompt_tokens is None:
        raise BackendError("no prompt_tokens in its answer")
    return meta.prompt_tokens
