"""A loaded model that takes tokens, as the engine reads it: its prompts, its labels, its limits."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

from openjev_core.backends.protocol import Branch, ChatTemplate, LoadedModel
from openjev_core.calibration import digest
from openjev_core.distribution import check_logprobs
from openjev_core.errors import BackendError, StartupError
from openjev_core.limits import Limits
from openjev_core.prompts.chat import prompt_writer
from openjev_core.prompts.labels import verify_labels
from openjev_core.prompts.proof import prove
from openjev_core.prompts.session import PromptReader
from openjev_core.question import PromptWords
from openjev_core.reader import Model
from openjev_core.settings import Settings

PROBE_STATE = "The lamp is on."
PROBE_WORDS = "Which label comes first?"
PROBE_TIMEOUT = 30.0
"""Seconds for the probe."""


def prompt_model(loaded: LoadedModel, settings: Settings, labels: Sequence[str]) -> Model:
    """The model, with a reader that writes its prompts.

    Args:
        loaded: A backend that is ready, its tokenizer and its chat template.
        settings: The settings of the start.
        labels: The question types' own labels; see :class:`~openjev_core.engine_type.EngineStart`.

    Raises:
        StartupError: The tokenizer or the template cannot carry the prompts, or there are too few labels.
    """
    return read_by(prompt_reader(loaded, settings, labels), loaded)


async def probed_model(
    loaded: LoadedModel, settings: Settings, labels: Sequence[str], progress: Callable[[str], None]
) -> Model:
    """As :func:`prompt_model`, after every label was read once: for a backend that others run.

    Raises:
        StartupError: As for :func:`prompt_model`, or the labels are not answered.
    """
    reader = prompt_reader(loaded, settings, labels)
    progress(await probe_labels(reader))
    return read_by(reader, loaded)


def prompt_reader(loaded: LoadedModel, settings: Settings, labels: Sequence[str]) -> PromptReader:
    """The reader of :func:`prompt_model`; raises as it does."""
    writer = prompt_writer(loaded.tokenizer, loaded.template, PromptWords(*settings.prompt_words))
    verified = verify_labels(writer, prove(writer).ending, settings.max_answers, labels)
    limits = Limits.of(settings, loaded.backend.max_prompt_tokens)
    return PromptReader(loaded.backend, writer, verified, limits)


def read_by(reader: PromptReader, loaded: LoadedModel) -> Model:
    """The loaded model, read by a reader of its own."""
    return Model(
        reader=reader,
        engine=loaded.backend.name,
        public_name=loaded.public_name,
        limits=reader.limits,
        wording=template_digest(loaded.template),
        check=loaded.backend.check,
        refused_labels=reader.labels.refused,
        preparing_waits=loaded.tokenizer_waits,
        one_at_a_time=loaded.one_at_a_time,
        demo=loaded.demo,
        release_date=loaded.release_date,
    )


def template_digest(template: ChatTemplate) -> str:
    """Digest of a chat template."""
    return digest(template.source, template.bos_token, template.eos_token)


async def probe_labels(reader: PromptReader) -> str:
    """Read every verified label once, after a real prompt.

    Returns:
        A line for a person.

    Raises:
        StartupError: The answer is no distribution over them.
    """
    ids = tuple(dict.fromkeys([*(token for _, token in reader.labels.by_position), *reader.labels.own.values()]))
    prefix = reader.writer.write(PROBE_STATE)
    branch = Branch(reader.writer.suffix(PROBE_WORDS, prefix.ending), ids)
    try:
        async with asyncio.timeout(PROBE_TIMEOUT), reader.backend.prefix(prefix.ids, key="openjev-probe") as warm:
            readings, _ = await warm.read([branch])
        check_logprobs(readings[0].logprobs)
    except (BackendError, TimeoutError) as error:
        raise StartupError(
            f"probe: expected logprobs of {len(ids)} labels after a real prompt, found: "
            f"{str(error) or f'none within {PROBE_TIMEOUT:g} s'}; does this {reader.backend.name} answer them?"
        ) from error
    mass = math.fsum(math.exp(value) for value in readings[0].logprobs)
    return f"probe: {len(ids)} labels read, which hold {min(mass, 1):.0%} of the probability"
