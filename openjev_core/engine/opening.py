"""Opening an engine from settings: in this process, or on a server that runs already."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from openjev_core.backends.discovery import Server, find_server
from openjev_core.backends.protocol import Branch, LoadedModel
from openjev_core.distribution import check_logprobs
from openjev_core.engine.engine import Engine, engine_for
from openjev_core.errors import BackendError, StartupError
from openjev_core.plugins.registry import Registry, load_registry
from openjev_core.settings import Settings

Progress = Callable[[str], None]
"""Takes a line for a person on what the start waits for or has found."""

PROBE_STATE = "The lamp is on."
PROBE_WORDS = "Which label comes first?"
PROBE_TIMEOUT = 30.0
"""Seconds for the probe."""


@asynccontextmanager
async def open_engine(
    settings: Settings | None = None,
    *,
    registry: Registry | None = None,
    progress: Progress = lambda _: None,
) -> AsyncIterator[Engine]:
    """An engine, ready to evaluate. The end of the block closes it.

    Args:
        settings: What to run with; the defaults, and so the embedded demo model, when ``None``.
        registry: The question types; the installed ones when ``None``.
        progress: Takes lines on what the start waits for and what it has found.

    Raises:
        StartupError: The model, its tokenizer, its template or the backend will not do; says why and what to change.
    """
    settings = settings or Settings()
    registry = registry or load_registry(settings.disable_plugins)
    if not registry.types:
        raise StartupError(
            "no question types are installed; `openjev plugins list` shows what became of each plugin "
            "(is openjev itself installed, or only on sys.path?)"
        )
    async with _open_model(settings, progress) as model:
        engine = engine_for(model, settings, registry)
        if model.backend.name == "sglang" and not settings.skip_checks:
            await probe_labels(engine, progress)
        try:
            yield engine
        finally:
            await engine.aclose()


@asynccontextmanager
async def _open_model(settings: Settings, progress: Progress) -> AsyncIterator[LoadedModel]:
    if settings.connect is not None:
        server = await _server_at(settings.connect, settings, progress)
        if server.kind == "SGLang":
            source = settings.model or server.tokenizer or ""
            async with connected_sglang(settings.connect, source, settings, progress) as model:
                yield model
            return
    from openjev_core.backends.llamacpp import open_llamacpp  # noqa: PLC0415 - xllamacpp is an optional extra

    async with open_llamacpp(settings, progress) as model:
        yield model


async def _server_at(url: str, settings: Settings, progress: Progress) -> Server:
    """The server at ``url``, which is asked what it is.

    Raises:
        StartupError: Nothing that is known answers there, or what does cannot be served from with these settings.
    """
    if settings.skip_checks:
        if settings.model is None:
            raise StartupError(
                f"--skip-checks: the server at {url} is taken for an SGLang and asked nothing, so its model's "
                "tokenizer has to be named: --model (OPENJEV_MODEL) takes a Hugging Face name or a directory with "
                "tokenizer.json"
            )
        return Server("SGLang")
    server = await find_server(url, settings.backend_api_key)
    progress(f"connect: found {'an' if server.kind == 'SGLang' else 'a'} {server.kind} at {url}, by GET {server.page}")
    if server.kind == "llama-server" and settings.workers > 1:
        raise StartupError(
            f"OPENJEV_WORKERS: expected 1 with a llama-server, found {settings.workers}; only an SGLang is shared by "
            "several workers"
        )
    return server


@asynccontextmanager
async def connected_sglang(url: str, source: str, settings: Settings, progress: Progress) -> AsyncIterator[LoadedModel]:
    """The model that a running SGLang serves.

    Args:
        url: The server's address.
        source: Where its model's tokenizer comes from: a directory or a Hugging Face name.
        settings: ``revision`` is the tokenizer's.
        progress: Takes a line for each check.

    Raises:
        StartupError: No tokenizer, no server, or a check failed; says what to change.
    """
    from openjev_core.backends.sglang import open_sglang  # noqa: PLC0415 - as in the imports below
    from openjev_core.backends.sglang.opening import fact_lines, tokenizer_is_proven, tokens_line  # noqa: PLC0415
    from openjev_core.prompts.tokenizer import load_tokenizer  # noqa: PLC0415 - a start on llama.cpp needs none of them

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
            public_name=settings.public_name or backend.facts.served_model_name or source,
        )


async def probe_labels(engine: Engine, progress: Progress) -> None:
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
        async with asyncio.timeout(PROBE_TIMEOUT), engine.model.backend.prefix(prefix.ids, key="openjev-probe") as warm:
            readings, _ = await warm.read([branch])
        check_logprobs(readings[0].logprobs)
    except (BackendError, TimeoutError) as error:
        raise StartupError(
            f"probe: expected logprobs of {len(ids)} labels after a real prompt, found: "
            f"{str(error) or f'none within {PROBE_TIMEOUT:g} s'}; is this an SGLang that answers token_ids_logprob?"
        ) from error
    mass = math.fsum(math.exp(value) for value in readings[0].logprobs)
    progress(f"probe: {len(ids)} labels read, which hold {min(mass, 1):.0%} of the probability")
