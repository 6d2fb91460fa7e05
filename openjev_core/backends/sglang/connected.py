"""The model that a running SGLang serves: its tokenizer, and the checks that end in lines for a person."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from openjev_core.address import Address
from openjev_core.backends.protocol import LoadedModel
from openjev_core.backends.sglang.opening import fact_lines, open_sglang, tokenizer_is_proven, tokens_line
from openjev_core.backends.sglang.plugin import PAGES
from openjev_core.engine_type import EngineStart
from openjev_core.errors import StartupError
from openjev_core.prompts.model import probed_model, prompt_model
from openjev_core.prompts.tokenizer import load_tokenizer
from openjev_core.reader import Model


@asynccontextmanager
async def connected_model(start: EngineStart) -> AsyncIterator[Model]:
    """Connect to the SGLang at the start's address.

    Raises:
        StartupError: No tokenizer, no server, or a check failed; says what to change.
    """
    settings, progress, address = start.settings, start.progress, start.address
    if address is None:
        raise StartupError("engine sglang: it is a server: give its address with --connect")
    inspect = not settings.skip_checks
    source = settings.model or await tokenizer_source(address, inspect=inspect)
    progress(f"loading the tokenizer of {source}")
    tokenizer, template = await asyncio.to_thread(load_tokenizer, source, settings.revision)
    size = tokenizer.vocab_size
    async with open_sglang(address.url, settings, vocab_size=size, inspect=inspect, log=progress) as backend:
        if inspect:
            lines = fact_lines(
                backend.facts, url=address.url, tokenizer=source, max_input_tokens=settings.max_input_tokens
            )
            for line in lines:
                progress(line)
            if not tokenizer_is_proven(backend.facts, source):
                progress(await tokens_line(backend.client, tokenizer))
        else:
            progress("checks: skipped")
        name = settings.public_name or backend.facts.served_model_name or source
        loaded = LoadedModel(backend, tokenizer, template, name)
        if inspect:
            yield await probed_model(loaded, settings, start.labels, progress)
        else:
            yield prompt_model(loaded, settings, start.labels)


async def tokenizer_source(address: Address, *, inspect: bool) -> str:
    """The source of the server's tokenizer, as it reports it: a directory or a Hugging Face name.

    Raises:
        StartupError: It does not say, or must not be asked.
    """
    if inspect:
        for path in PAGES:
            _, page = await address.page(path)
            for name in ("tokenizer_path", "model_path"):
                if isinstance(source := page.get(name), str) and source:
                    return source
    why = "does not report its model" if inspect else "is asked nothing, because of --skip-checks"
    raise StartupError(
        f"connect: the SGLang at {address.url} {why}, so its model's tokenizer has to be named: --model "
        "(OPENJEV_MODEL) takes a Hugging Face name or a directory with tokenizer.json"
    )
