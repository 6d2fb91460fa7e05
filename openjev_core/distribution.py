"""From label logprobs to probabilities: softmax, confidence, averaging over orders.

Logprobs are natural logarithms; probabilities lie in [0, 1] and sum to 1. Nothing here knows of prompts or backends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from openjev_core.errors import BackendError

ConfidenceFormula = Literal["entropy", "jev"]

LOG_FLOOR = -100.0
"""Where averaging in log space stops: an option that one order gives probability 0 keeps e^-100 of a vote there,
instead of a veto over every other order."""

MASS_ROUNDING = 0.01
"""How far above 1 the probabilities of distinct tokens may sum: models that compute in 16 bits round each of them."""


def softmax(logprobs: Sequence[float], temperature: float = 1.0) -> tuple[float, ...]:
    """Normalise label logprobs to probabilities over the labels alone.

    Args:
        logprobs: One per label, in nats, as :func:`check_logprobs` accepts them. ``-inf`` becomes probability 0.
        temperature: Divides the logprobs first; finite and above 0.
    """
    highest = max(logprobs)
    weights = [math.exp((value - highest) / temperature) for value in logprobs]
    total = math.fsum(weights)
    return tuple([weight / total for weight in weights])


def check_logprobs(logprobs: Sequence[float]) -> None:
    """Refuse logprobs of a backend that the other functions of this module do not accept.

    Raises:
        BackendError: All are ``-inf``, or one is NaN or ``+inf``: there is no distribution to speak of.
    """
    if logprobs and all(map(math.isfinite, logprobs)):
        return
    if any(math.isnan(value) or value == math.inf for value in logprobs):
        raise BackendError("the backend returned a label logprob that is not a number")
    if all(value == -math.inf for value in logprobs):
        raise BackendError("the backend gave every label probability 0, so there is no distribution over them")


def label_mass(logprobs: Sequence[float]) -> float:
    """How much of the probability of all tokens the labels hold: Σ exp, in [0, 1].

    Args:
        logprobs: One per label, in nats, normalised over the whole vocabulary.

    Raises:
        BackendError: The sum is above 1 by more than rounding, so they are not normalised over a vocabulary.
    """
    mass = math.fsum([math.exp(min(value, 1.0)) for value in logprobs])
    if mass > 1 + MASS_ROUNDING:
        raise BackendError(
            f"the labels' probabilities sum to {mass:.3g}, so what the backend returned are no log-probabilities"
        )
    return min(mass, 1.0)


def mean_mass(masses: Sequence[float | None]) -> float | None:
    """The mean of label masses; ``None`` where there are none, or where one is unknown."""
    if len(masses) == 1:
        return masses[0]
    if not masses or None in masses:
        return None
    return math.fsum([mass for mass in masses if mass is not None]) / len(masses)


def floored_logs(logprobs: Sequence[float], temperature: float = 1.0) -> list[float]:
    """Normalised log-probabilities, none below :data:`LOG_FLOOR`, so that they can be averaged and subtracted."""
    return [max(math.log(p), LOG_FLOOR) if p > 0 else LOG_FLOOR for p in softmax(logprobs, temperature)]


def average_orders(orders: Sequence[Sequence[float]], temperature: float = 1.0) -> tuple[float, ...]:
    """The distribution of several reads of the same options: their normalised log-probabilities' mean, normalised.

    Args:
        orders: Label logprobs of each read, mapped back to the options' given order.
        temperature: As for :func:`softmax`.
    """
    if len(orders) == 1:
        return softmax(orders[0], temperature)
    logs = [floored_logs(order, temperature) for order in orders]
    return softmax([math.fsum(column) / len(logs) for column in zip(*logs, strict=True)])


def spread(orders: Sequence[Sequence[float]], temperature: float = 1.0) -> float:
    """The largest difference, over options, between the probabilities that two orders gave it."""
    reads = [softmax(order, temperature) for order in orders]
    widths: list[float] = [max(column) - min(column) for column in zip(*reads, strict=True)]
    return max(widths)


def entropy(probabilities: Sequence[float]) -> float:
    """Shannon entropy in nats; 0·log 0 counts as 0."""
    return -math.fsum([p * math.log(p) for p in probabilities if p > 0])


def confidence(probabilities: Sequence[float], *, formula: ConfidenceFormula, ordered: bool) -> float:
    """How decided a distribution is: 0 when uniform, 1 when one option has everything.

    ``entropy`` is 1 − H(p)/log n. ``jev`` is that of the System One reference: (max p − 1/n) / (1 − 1/n) for
    unordered options; for ordered ones 1 − Σ pᵢ·|i − mode| / D with D = Σ |i − (n−1)/2| / n, the mean distance of a
    uniform distribution from its centre.
    """
    value: float
    n = len(probabilities)
    if formula == "entropy":
        value = 1 - entropy(probabilities) / math.log(n)
    elif not ordered:
        value = (max(probabilities) - 1 / n) / (1 - 1 / n)
    else:
        mode = probabilities.index(max(probabilities))
        scale = math.fsum(abs(i - (n - 1) / 2) for i in range(n)) / n
        value = 1 - math.fsum(p * abs(i - mode) for i, p in enumerate(probabilities)) / scale
    return min(1.0, max(0.0, value))
