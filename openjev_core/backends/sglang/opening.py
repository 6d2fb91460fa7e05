"""From a URL to a backend."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Literal

from openjev_core.backends.protocol import Branch
from openjev_core.backends.sglang.backend import SGLangBackend
from openjev_core.backends.sglang.client import SGLangClient
from openjev_core.backends.sglang.facts import SGLangFacts, read_facts
from openjev_core.backends.sglang.slots import Slots
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
        settings: Fan-out, slots, timeouts, the branch limit and the backend's key.
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
        call_timeout=settings.request_timeout,
    )
    try:
        if inspect:
            backend.facts = await facts_or_fail(client)
            backend.max_prompt_tokens = backend.facts.max_prompt_tokens or backend.max_prompt_tokens
            backend.fanout = await proven_fanout(backend, log)
        yield backend
    finally:
        await backend.aclose()


async def facts_or_fail(client: SGLangClient) -> SGLangFacts:
    """The server's facts, or why there is no start."""
    try:
        return await read_facts(client)
    except (BackendUnavailable, DeadlineExceeded) as error:
        raise StartupError(
            f"reachable: expected an SGLang at {client.url}, found: {error}. "
            "Start it, or give its address with --connect"
        ) from None


async def proven_fanout(backend: SGLangBackend, log: Callable[[str], None]) -> Literal["batch", "calls"]:
    """The configured way to fan out, or ``calls`` where the server does not take batches.

    Raises:
        StartupError: It does not take single calls either.
    """
    try:
        async with backend.prefix(PROOF_PREFIX, key="openjev-proof") as prefix:
            if backend.fanout == "calls":
                return "calls"
            try:
                await prefix.read(PROOF_BRANCHES)
            except BackendUnavailable:
                raise
            except BackendError as error:
                log(f"fan-out: the server does not take batches ({error}); one call per branch instead")
                return "calls"
    except BackendError as error:
        raise StartupError(
            f"probe: expected an answer to a labelled one-token call from {backend.client.url}, found: {error}"
        ) from None
    return "batch"
