"""From settings to a loaded model on llama.cpp: in this process, or on a server that runs already."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from openjev_core.backends.llamacpp import control_tokens
from openjev_core.backends.llamacpp.backend import LlamaCppBackend
from openjev_core.backends.llamacpp.client import LlamaCppClient
from openjev_core.backends.llamacpp.embedded import start_embedded
from openjev_core.backends.llamacpp.facts import ServerFacts, read_facts, wait_until_loaded
from openjev_core.backends.llamacpp.gguf import GgufHeader, read_header
from openjev_core.backends.llamacpp.model_source import ModelFile, find_model
from openjev_core.backends.llamacpp.slot import Slot, SlotPool
from openjev_core.backends.llamacpp.threads import default_threads
from openjev_core.backends.llamacpp.tokenizer import LlamaCppTokenizer
from openjev_core.backends.llamacpp.vocabulary import Vocabulary
from openjev_core.backends.protocol import LoadedModel
from openjev_core.errors import BackendError, StartupError
from openjev_core.settings import Settings

Progress = Callable[[str], None]


@asynccontextmanager
async def open_llamacpp(settings: Settings, progress: Progress = lambda _: None) -> AsyncIterator[LoadedModel]:
    """A model on llama.cpp, ready; at the end of the block it is closed, and an embedded engine and its port are gone.

    Args:
        settings: ``llama_server`` names a running server; without it ``model`` (the demo model when unset) is loaded
            into this process.
        progress: Takes lines for a person on what is being waited for.

    Raises:
        StartupError: The model cannot be had or loaded, or the server does not answer as it should.
    """
    resources = AsyncExitStack()
    try:
        opening = _connect if settings.llama_server else _embed
        yield await opening(settings, progress, resources)
    finally:
        await _to_the_end(resources.aclose())


async def _embed(settings: Settings, progress: Progress, resources: AsyncExitStack) -> LoadedModel:
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
    client = LlamaCppClient(server.url, server.api_key)
    resources.push_async_callback(client.aclose)
    return await load(client, server.api_key, settings, resources, file=file, header=header)


async def _connect(settings: Settings, progress: Progress, resources: AsyncExitStack) -> LoadedModel:
    url, key = settings.llama_server or "", settings.backend_api_key
    client = LlamaCppClient(url, key)
    resources.push_async_callback(client.aclose)
    await wait_until_loaded(client, settings.startup_timeout, progress)
    if settings.model is not None:
        file = await asyncio.to_thread(find_model, settings.model, settings.revision, progress)
        header = await asyncio.to_thread(read_header, file.path)
        return await load(client, key, settings, resources, file=file, header=header)
    progress(
        "control tokens: told from their looks, because only the server has the model's file; "
        "--model with the file's path or Hugging Face name says exactly which they are"
    )
    return await load(client, key, settings, resources)


async def load(
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
        client: The server.
        key: Its Bearer key.
        settings: ``served_model_name`` wins over any other.
        resources: Takes what has to be closed with the model, and is closed by its backend.
        file: The model's file, where there is one on this machine.
        header: What that file says.

    Raises:
        StartupError: The server does not answer as it should, or has another model than ``file``.
    """
    vocabulary = Vocabulary(client.url, key)
    resources.callback(vocabulary.close)
    try:
        facts = await read_facts(client)
        tokenizer = await asyncio.to_thread(_tokenizer, vocabulary, facts, header)
        backend = LlamaCppBackend(
            client=client,
            vocab_size=facts.vocab_size,
            max_prompt_tokens=facts.context - 1,
            pool=SlotPool([Slot(client, number) for number in range(facts.slots)]),
            release=resources.aclose,
        )
        await backend.prove_reuse()
    except BackendError as error:
        raise StartupError(
            f"expected a llama.cpp server with a language model at {client.url}, found: {error}"
        ) from error
    name = file.public_name if file else Path(facts.name).stem
    return LoadedModel(
        tokenizer_waits=True,
        backend=backend,
        tokenizer=tokenizer,
        template=facts.template,
        public_name=settings.served_model_name or name,
        demo=file is not None and file.demo,
        release_date=file.release_date if file else None,
    )


async def _to_the_end(closing: Awaitable[None]) -> None:
    """Wait for a release, also while being cancelled: a port or a model must not outlive its block."""
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


def _tokenizer(vocabulary: Vocabulary, facts: ServerFacts, header: GgufHeader | None) -> LlamaCppTokenizer:
    if header is None:
        control = control_tokens.from_server(vocabulary, facts.vocab_size, facts.template.source)
    elif len(header.tokens) != facts.vocab_size:
        raise StartupError(
            f"model: the file has a vocabulary of {len(header.tokens)} tokens, the llama-server's model one of "
            f"{facts.vocab_size}: name the file that the server loaded"
        )
    else:
        control = control_tokens.from_header(header, vocabulary)
    if not (set(control.values()) <= set(range(facts.vocab_size))):
        raise StartupError("the server returned a token id outside its own vocabulary")
    tokenizer = LlamaCppTokenizer(vocabulary, facts.vocab_size, control)
    if tokenizer.decode(tokenizer.encode("a")) != "a":
        raise StartupError(
            "this model's tokenizer puts a space in front of every text, so prompts cannot be tokenized in parts; "
            "choose a model with a byte-level tokenizer, such as the Qwen, Llama 3 or SmolLM families"
        )
    return tokenizer
