"""A ``/completion`` answer as a reading.

Every label was given the same bias, far above what any logit reaches, so the probabilities after sampling are the
softmax over the labels alone: the bias cancels among them, and nothing else is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from openjev_core.backends.protocol import Reading
from openjev_core.errors import BackendError

MAX_PROBABILITY = 1.0001
"""1, with room for the rounding of 32-bit floats."""


def reading(answer: Mapping[str, Any], labels: Sequence[int]) -> Reading:
    """The counts and, where labels were asked for, their logprobs.

    Raises:
        BackendError: A count is missing or cannot be, or a label is missing, there twice, or without a probability.
    """
    timings = answer.get("timings")
    if not isinstance(timings, dict):
        raise BackendError("llama.cpp's answer has no timings")
    prompt_tokens, computed = count(answer, "tokens_evaluated"), count(timings, "prompt_n")
    if computed > prompt_tokens:
        raise BackendError(f"llama.cpp's answer reports {computed} computed tokens of a prompt of {prompt_tokens}")
    return Reading(
        logprobs=label_logprobs(answer, labels) if labels else (),
        prompt_tokens=prompt_tokens,
        # `tokens_evaluated` counts the whole prompt, `prompt_n` what was computed of it.
        cached_tokens=prompt_tokens - computed,
        output_tokens=count(answer, "tokens_predicted"),
    )


def count(fields: Mapping[str, Any], name: str) -> int:
    """One of the answer's counts."""
    found = fields.get(name)
    if type(found) is not int or found < 0:
        raise BackendError(f"llama.cpp's answer has no {name}, or one that is no count")
    return found


def label_logprobs(answer: Mapping[str, Any], labels: Sequence[int]) -> tuple[float, ...]:
    """The labels' logprobs, in the order of ``labels``."""
    wanted = frozenset(labels)
    found: dict[int, float] = {}
    for entry in first_position(answer):
        token = entry.get("id") if isinstance(entry, dict) else None
        if token not in wanted:
            continue
        if token in found:
            raise BackendError(f"llama.cpp returned the label {token} twice")
        found[token] = logarithm(entry.get("prob"), token)
    missing = [label for label in labels if label not in found]
    if missing:
        raise BackendError(
            f"llama.cpp returned no probability for {len(missing)} of {len(labels)} labels: {missing[:8]}"
        )
    return tuple(found[label] for label in labels)


def first_position(answer: Mapping[str, Any]) -> list[Any]:
    """The entries of the first output token."""
    positions = answer.get("completion_probabilities")
    first = positions[0] if isinstance(positions, list) and positions else None
    entries = first.get("top_probs") if isinstance(first, dict) else None
    if not isinstance(entries, list):
        raise BackendError(
            "llama.cpp's answer has no probabilities after sampling; a llama-server of 2025 or later is needed"
        )
    return entries


def logarithm(probability: Any, token: int) -> float:
    """The logprob of a probability; a NaN arrives as null."""
    if type(probability) not in (int, float) or not 0 <= probability <= MAX_PROBABILITY:
        raise BackendError(f"llama.cpp returned {probability!r} as the probability of the label {token}")
    return math.log(probability) if probability > 0 else -math.inf
