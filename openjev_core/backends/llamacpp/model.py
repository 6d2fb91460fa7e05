"""A loaded model on llama.cpp: in this process, or on a llama-server that runs already."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import frozen

from openjev_core.backends.http_client import HttpClient, Unreachable
from openjev_core.backends.llamacpp.backend import LlamaCppBackend
from openjev_core.backends.llamacpp.client import SERVER, LlamaCppClient, Vocabulary
from openjev_core.backends.llamacpp.embedded import default_threads, start_embedded
from openjev_core.backends.llamacpp.gguf import GgufHeader, read_header
from openjev_core.backends.llamacpp.model_file import ModelFile, find_model
from openjev_core.backends.llamacpp.slot import Slot, SlotPool
from openjev_core.backends.llamacpp.tokenizer import (
    LlamaCppTokenizer,
    control_tokens_from_header,
    control_tokens_from_server,
)
from openjev_core.backends.protocol import ChatTemplate, LoadedModel
from openjev_core.engine_type import Progress
from openjev_core.errors import BackendError, BackendUnavailable, StartupError
from openjev_core.settings import Settings

PROPS_TIMEOUT = 30.0
LOADING_POLL = 0.5
"""Seconds between two looks at a server that is still loading its model."""


@asynccontextmanager
async def open_llamacpp(settings: Settings, progress: Progress = lambda _: None) -> AsyncIterator[LoadedModel]:
    """A model on llama.cpp, ready. The end of the block closes it, and an embedded engine and its port are gone.

    Args:
        settings: ``connect`` names a running llama-server; without it ``model`` (the demo model when unset) is loaded
            into this process.
        progress: Takes a line for a person on what the start waits for.

    Raises:
        StartupError: The model cannot be had or loaded, or the server does not answer as it should.
    """
    resources = AsyncExitStack()
    try:
        load = _load_connected if settings.connect else _load_embedded
        yield await load(settings, progress, resources)
    finally:
        await _finish(resources.aclose())


async def _load_embedded(settings: Settings, progress: Progress, resources: AsyncExitStack) -> LoadedModel:
    file = await asyncio.to_thread(find_model, settings.model, settings.revision, progress)
    header = await asyncio.to_thread(read_header, file.path)
    context = min(header.context_length, settings.max_input_tokens)
    threads = settings.threads or default_threads()
    progress(
        f"loading {file.public_name} ({file.path.stat().st_size / 2**20:.0f} MiB) with llama.cpp: "
        f"{context} tokens of context, " + (f"{threads} threads" if threads else "a thread for each core")
    )
    server = await start_embedded(file.path, context=context, threads=threads)
    resources.push_async_callback(server.close)
    client = LlamaCppClient(HttpClient(SERVER, server.url, server.api_key))
    resources.push_async_callback(client.aclose)
    return await served_model(client, server.api_key, settings, resources, file=file, header=header)


async def _load_connected(settings: Settings, progress: Progress, resources: AsyncExitStack) -> LoadedModel:
    key = settings.backend_api_key
    client = LlamaCppClient(HttpClient(SERVER, (settings.connect or "").rstrip("/"), key))
    resources.push_async_callback(client.aclose)
    await wait_until_loaded(client, settings.startup_timeout, progress)
    if settings.model is not None:
        file = await asyncio.to_thread(find_model, settings.model, settings.revision, progress)
        header = await asyncio.to_thread(read_header, file.path)
        return await served_model(client, key, settings, resources, file=file, header=header)
    progress(
        "control tokens: told from their looks, because only the server has the model's file; "
        "--model with the file's path or Hugging Face name says exactly which they are"
    )
    return await served_model(client, key, settings, resources)


async def served_model(
    client: LlamaCppClient,
    key: str | None,
    settings: Settings,
    resources: AsyncExitStack,
    *,
    file: ModelFile | None = None,
    header: GgufHeader | None = None,
) -> LoadedModel:
    """The model that a server has loaded.

    Args:
        client: Calls to the server.
        key: The server's Bearer key.
        settings: ``served_model_name`` wins over any other name.
        resources: What has to be closed with the model; the backend closes it.
        file: The model's file, where there is one on this machine.
        header: The header of that file.

    Raises:
        StartupError: The server does not answer as it should, or has another model than ``file``.
    """
    vocabulary = Vocabulary(client.url, key)
    resources.callback(vocabulary.close)
    try:
        props = await read_props(client)
        tokenizer = await asyncio.to_thread(_tokenizer, vocabulary, props, header)
        backend = LlamaCppBackend(
            client=client,
            vocab_size=props.vocab_size,
            max_prompt_tokens=props.context - 1,
            pool=SlotPool([Slot(client, number) for number in range(props.slots)]),
            release=resources.aclose,
        )
        await backend.prove_reuse()
    except BackendError as error:
        raise StartupError(
            f"expected a llama.cpp server with a language model at {client.url}, found: {error}"
        ) from error
    name = file.public_name if file else Path(props.name).stem
    return LoadedModel(
        tokenizer_waits=True,
        one_at_a_time=True,
        backend=backend,
        tokenizer=tokenizer,
        template=props.template,
        public_name=settings.public_name or name,
        demo=file is not None and file.demo,
        release_date=file.release_date if file else None,
    )


def _tokenizer(vocabulary: Vocabulary, props: ServerProps, header: GgufHeader | None) -> LlamaCppTokenizer:
    if header is None:
        control = control_tokens_from_server(vocabulary, props.vocab_size, props.template.source)
    elif len(header.tokens) != props.vocab_size:
        raise StartupError(
            f"model: the file has a vocabulary of {len(header.tokens)} tokens, the llama-server's model one of "
            f"{props.vocab_size}: name the file that the server loaded"
        )
    else:
        control = control_tokens_from_header(header, vocabulary)
    if not (set(control.values()) <= set(range(props.vocab_size))):
        raise StartupError("the server returned a token id outside its own vocabulary")
    tokenizer = LlamaCppTokenizer(vocabulary, props.vocab_size, control)
    if tokenizer.decode(tokenizer.encode("a")) != "a":
        raise StartupError(
            "this model's tokenizer puts a space in front of every text, so prompts cannot be tokenized in parts; "
            "choose a model with a byte-level tokenizer, such as the Qwen, Llama 3 or SmolLM families"
        )
    return tokenizer


@frozen(kw_only=True)
class ServerProps:
    """What a llama.cpp server reports about itself and its model, on ``/props`` and ``/v1/models``.

    Attributes:
        vocab_size: Ids lie in ``range(vocab_size)``.
        context: Tokens of a prompt and its output: what a slot holds, and no more than the model was trained on.
        slots: The number of slots.
        name: The server's name for the model.
        template: The model's chat template.
    """

    vocab_size: int
    context: int
    slots: int
    name: str
    template: ChatTemplate


async def read_props(client: LlamaCppClient) -> ServerProps:
    """Ask the server about itself.

    Raises:
        StartupError: The model has no chat template.
        BackendError: The server does not answer as it should.
    """
    props = await client.get("props", seconds=PROPS_TIMEOUT)
    models = await client.get("v1/models", seconds=PROPS_TIMEOUT)
    entries = models.get("data")
    meta = _object(entries[0] if isinstance(entries, list) and entries else None, "meta")
    template = props.get("chat_template")
    if not isinstance(template, str) or not template:
        raise StartupError("this model's file has no chat template; choose an instruction-tuned (chat) model")
    context = _number(_object(props, "default_generation_settings"), "n_ctx")
    return ServerProps(
        vocab_size=_number(meta, "n_vocab"),
        context=min(context, _number(meta, "n_ctx_train")),
        slots=_number(props, "total_slots"),
        name=str(entries[0].get("id") or "llama.cpp") if entries else "llama.cpp",
        template=ChatTemplate(template, str(props.get("bos_token") or ""), str(props.get("eos_token") or "")),
    )


def _object(page: Any, name: str) -> dict[str, Any]:
    inner = page.get(name) if isinstance(page, dict) else None
    if not isinstance(inner, dict):
        raise BackendError(f"no {name} in what the server says about itself")
    return inner


def _number(page: dict[str, Any], name: str) -> int:
    number = page.get(name)
    if type(number) is not int or number < 1:
        raise BackendError(f"no {name} in what the server says about itself")
    return number


async def wait_until_loaded(client: LlamaCppClient, seconds: float, progress: Progress) -> None:
    """Wait for a server that is there to have loaded its model.

    Raises:
        StartupError: The server cannot be reached, or is not ready in time.
    """
    announced = False
    try:
        async with asyncio.timeout(seconds):
            while not await is_loaded(client):
                if not announced:
                    progress(f"waiting for the llama-server at {client.url} to load its model")
                    announced = True
                await asyncio.sleep(LOADING_POLL)
    except TimeoutError:
        raise StartupError(
            f"the llama-server at {client.url} was not ready within {seconds:g} s (OPENJEV_STARTUP_TIMEOUT)"
        ) from None
    except BackendError as error:
        raise StartupError(
            f"expected a llama-server at {client.url}, found: {error}. Start it, or give its address with --connect"
        ) from None


async def is_loaded(client: LlamaCppClient) -> bool:
    """Whether the server has loaded its model.

    Raises:
        Unreachable: Nothing listens at the address.
        BackendError: The server has no ``/health`` page.
    """
    try:
        await client.get("health", seconds=PROPS_TIMEOUT)
    except Unreachable:
        raise
    except BackendUnavailable:
        return False
    return True


async def _finish(closing: Awaitable[None]) -> None:
    """Wait for ``closing`` also while this task is cancelled: a port or a model must not outlive its block."""
    task = asyncio.ensure_future(closing)
    cancelled = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
