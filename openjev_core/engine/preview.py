"""Showing the prompts of a request to a person."""

from __future__ import annotations

from collections.abc import Sequence

from openjev_core.backends.protocol import Tokenizer
from openjev_core.engine.evaluation import Preview, PromptPreview
from openjev_core.prompts.compiler import Compiled


def preview_of(compiled: Compiled, tokenizer: Tokenizer) -> Preview:
    """Every prompt of a compiled request, as text and as tokens."""
    branches = tuple(
        PromptPreview(
            question_id=question.id,
            readout=index,
            labels={label: option.text for label, option in variant.labelled},
            prompt=f"{compiled.prefix.text} {variant.words}{compiled.prefix.ending.text}",
            tokens=_tokens(tokenizer, variant.branch.suffix),
        )
        for question in compiled.questions
        for index, readout in enumerate(question.readouts)
        for variant in readout.variants
    )
    return Preview(
        prefix=compiled.prefix.text,
        prefix_tokens=_tokens(tokenizer, compiled.prefix.ids),
        branches=branches,
    )


def _tokens(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[tuple[int, str], ...]:
    # Each id once: some tokenizers ask a server.
    texts = {token: tokenizer.decode([token]) for token in dict.fromkeys(ids)}
    return tuple((token, texts[token]) for token in ids)
