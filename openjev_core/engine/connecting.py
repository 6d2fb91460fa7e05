"""Serving from an SGLang that is already running."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from openjev_core.backends.protocol import Branch, LoadedModel
from openjev_core.backends.sglang import open_sglang
from openjev_core.backends.sglang.opening import fact_lines, tokenizer_is_proven, tokens_line
from openjev_core.distribution import check_logprobs
from openjev_core.engine.engine import Engine
from openjev_core.errors import BackendError, StartupError
from openjev_core.prompts.tokenizer import load_tokenizer
from openjev_core.settings import Settings

PROBE_STATE = "The lamp is on."
PROBE_WORDS = "Which label comes first?"


@asynccontextmanager
async def connect(settings: Settings, progress: Callable[[str], None]) -> AsyncIterator[LoadedModel]:
    """The model that the SGLang at ``settings.connect`` serves.

    Args:
        settings: ``model`` and ``revision`` name the tokenizer's source.
        progress: Takes a line for each check.

    Raises:
        StartupError: No tokenizer, no server, or a check failed; says what to change.
    """
    url, source = settings.connect, settings.model
    if url is None or source is None:
        raise StartupError(
            "a connected SGLang needs its model's tokenizer on this side: name its source with --model "
            "(OPENJEV_MODEL), a Hugging Face name or a directory with tokenizer.json"
        )
    progress(f"loading the tokenizer of {source}")
    tokenizer, template = await asyncio.to_thread(load_tokenizer, source, settings.revision)
    inspect = not settings.skip_checks
    async with open_sglang(url, settings, vocab_size=tokenizer.vocab_size, inspect=inspect, log=progress) as backend:
        if inspect:
            lines = fact_lines(backend.facts, url=url, tokenizer=source, max_input_tokens=settings.max_input_tokens)
            for line in lines:
                progress(line)
            if not tokenizer_is_proven(backend.facts, source):
                progress(await tokens_line(backend.client, tokenizer))
        else:
            progress("checks: skipped")
        yield LoadedModel(
            backend=backend,
            tokenizer=tokenizer,
            template=template,
            public_name=settings.served_model_name or backend.facts.served_model_name or source,
        )


async def probe_labels(engine: Engine, progress: Callable[[str], None]) -> None:
    """Read every verified label once, after a real prompt.

    Raises:
        StartupError: The answer is no distribution over them.
    """
    labels = engine.reader.labels
    ids = tuple(dict.fromkeys([*(token for _, token in labels.by_position), *labels.own.values()]))
    writer = engine.reader.writer
    prefix = writer.write(PROBE_STATE)
    branch = Branch(writer.suffix(PROBE_WORDS, prefix.ending), ids)
    try:
        async with engine.model.backend.prefix(prefix.ids, key="openjev-probe") as warm:
            readings, _ = await warm.read([branch])
        check_logprobs(readings[0].logprobs)
    except BackendError as error:
        raise StartupError(
            f"probe: expected logprobs of {len(ids)} labels after a real prompt, found: {error}; is this an SGLang "
            "that answers token_ids_logprob?"
        ) from error
    mass = math.fsum(math.exp(value) for value in readings[0].logprobs)
    progress(f"probe: {len(ids)} labels read, which hold {min(mass, 1):.0%} of the probability")
