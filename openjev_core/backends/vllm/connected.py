"""The model that a running vLLM serves: its tokenizer, and the checks that end in lines for a person."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from openjev_core.address import Address
from openjev_core.backends.protocol import LoadedModel
from openjev_core.backends.vllm.opening import fact_lines, open_vllm, tokenizer_is_proven, tokens_line
from openjev_core.backends.vllm.plugin import PAGE
from openjev_core.backends.vllm.wire import base_model
from openjev_core.engine_type import EngineStart
from openjev_core.errors import StartupError
from openjev_core.prompts.model import probed_model, prompt_model
from openjev_core.prompts.tokenizer import load_tokenizer
from openjev_core.reader import Model


@asynccontextmanager
async def connected_model(start: EngineStart) -> AsyncIterator[Model]:
    """Connect to the vLLM at the start's address.

    Raises:
        StartupError: No tokenizer, no server, or a check failed; says what to change.
    """
    settings, progress, address = start.settings, start.progress, start.address
    if address is None:
        raise StartupError("engine vllm: it is a server: give its address with --connect")
    inspect = not settings.skip_checks
    source = settings.model or await tokenizer_source(address, inspect=inspect)
    progress(f"loading the tokenizer of {source}")
    tokenizer, template = await asyncio.to_thread(load_tokenizer, source, settings.revision)
    async with open_vllm(address.url, settings, vocab_size=tokenizer.vocab_size, inspect=inspect) as backend:
        name = settings.public_name or backend.facts.model or source
        loaded = LoadedModel(backend, tokenizer, template, name)
        if not inspect:
            progress("checks: skipped")
            yield prompt_model(loaded, settings, start.labels)
            return
        promised = settings.max_input_tokens
        for line in fact_lines(backend.facts, url=address.url, tokenizer=source, max_input_tokens=promised):
            progress(line)
        if not tokenizer_is_proven(backend.facts, source):
            progress(await tokens_line(backend, tokenizer))
        yield await probed_model(loaded, settings, start.labels, progress)


async def tokenizer_source(address: Address, *, inspect: bool) -> str:
    """Where the server's model comes from, as it reports it: a directory or a Hugging Face name.

    Raises:
        StartupError: It does not say, or must not be asked.
    """
    root = None
    if inspect:
        _, page = await address.page(PAGE)
        root = (base_model(page) or {}).get("root")
    if isinstance(root, str) and root:
        return root
    why = "does not report its model" if inspect else "is asked nothing, because of --skip-checks"
    raise StartupError(
        f"connect: the vLLM at {address.url} {why}, so its model's tokenizer has to be named: --model "
        "(OPENJEV_MODEL) takes a Hugging Face name or a directory with tokenizer.json"
    )
