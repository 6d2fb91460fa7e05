"""What a llama.cpp server says about itself, and waiting until it says that it is ready."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from attrs import frozen

from openjev_core.backends.llamacpp.client import LlamaCppClient, Unreachable
from openjev_core.backends.protocol import ChatTemplate
from openjev_core.errors import BackendError, BackendUnavailable, StartupError

FACTS_TIMEOUT = 30.0
LOADING_POLL = 0.5
"""Seconds between two looks at a server that is still loading its model."""


@frozen(kw_only=True)
class ServerFacts:
    """What a llama.cpp server says about itself.

    Attributes:
        vocab_size: Ids lie in ``range(vocab_size)``.
        context: Tokens of a prompt and its output: what a slot holds, and no more than the model was trained on.
        slots: How many there are.
        name: The model's, as the server calls it.
        template: The model's chat template.
    """

    vocab_size: int
    context: int
    slots: int
    name: str
    template: ChatTemplate


async def read_facts(client: LlamaCppClient) -> ServerFacts:
    """What the server says about itself.

    Raises:
        StartupError: It lacks something without which it cannot be served from.
        BackendError: It does not answer as it should.
    """
    props = await client.get("/props", seconds=FACTS_TIMEOUT)
    models = await client.get("/v1/models", seconds=FACTS_TIMEOUT)
    entries = models.get("data")
    meta = _object(entries[0] if isinstance(entries, list) and entries else None, "meta")
    template = props.get("chat_template")
    if not isinstance(template, str) or not template:
        raise StartupError("this model's file has no chat template; choose an instruction-tuned (chat) model")
    context = _number(_object(props, "default_generation_settings"), "n_ctx")
    return ServerFacts(
        vocab_size=_number(meta, "n_vocab"),
        context=min(context, _number(meta, "n_ctx_train")),
        slots=_number(props, "total_slots"),
        name=str(entries[0].get("id") or "llama.cpp") if entries else "llama.cpp",
        template=ChatTemplate(template, str(props.get("bos_token") or ""), str(props.get("eos_token") or "")),
    )


def _object(found: Any, name: str) -> dict[str, Any]:
    inner = found.get(name) if isinstance(found, dict) else None
    if not isinstance(inner, dict):
        raise BackendError(f"no {name} in what the server says about itself")
    return inner


def _number(found: dict[str, Any], name: str) -> int:
    number = found.get(name)
    if type(number) is not int or number < 1:
        raise BackendError(f"no {name} in what the server says about itself")
    return number


async def wait_until_loaded(client: LlamaCppClient, seconds: float, progress: Callable[[str], None]) -> None:
    """Wait while a server that is there says that it is not ready.

    Raises:
        StartupError: It cannot be reached, or is not ready in time.
    """
    said = False
    try:
        async with asyncio.timeout(seconds):
            while not await is_loaded(client):
                if not said:
                    progress(f"waiting for the llama-server at {client.url} to load its model")
                    said = True
                await asyncio.sleep(LOADING_POLL)
    except TimeoutError:
        raise StartupError(
            f"the llama-server at {client.url} was not ready within {seconds:g} s (OPENJEV_STARTUP_TIMEOUT)"
        ) from None
    except BackendError as error:
        raise StartupError(
            f"expected a llama-server at {client.url}, found: {error}. "
            "Start it, or give its address with --llama-server"
        ) from None


async def is_loaded(client: LlamaCppClient) -> bool:
    """Whether the server has its model; raises as :meth:`LlamaCppClient.get` does where it is no such server."""
    try:
        await client.get("/health", seconds=FACTS_TIMEOUT)
    except Unreachable:
        raise
    except BackendUnavailable:
        return False
    return True
