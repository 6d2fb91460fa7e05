"""When an adaptive evaluation may stop reading further orders."""

from __future__ import annotations

import math
from collections.abc import Sequence

from openjev_core.distribution import LOG_FLOOR, softmax

BOUND = 0.02
"""How far a probability may still move for a readout to count as settled."""


def settled(orders: Sequence[Sequence[float]], total: int, temperature: float) -> bool:
    """Whether reading the remaining orders could move no probability by more than :data:`BOUND`.

    Assumed is that an unread order departs from the mean, option by option in log space, no further than the most
    deviant order read so far. Under that, an option's averaged log-probability moves by at most
    ``(unread / total) * deviation``; the bound is checked for each option with all shifts against it.

    Args:
        orders: Scores of the orders read so far, in the options' given order; at least two.
        total: How many orders there are.
        temperature: As for :func:`~openjev_core.distribution.softmax`.
    """
    unread = total - len(orders)
    if unread == 0:
        return True
    if len(orders) == 1:
        return False
    logs = [[max(math.log(p), LOG_FLOOR) if p > 0 else LOG_FLOOR for p in softmax(o, temperature)] for o in orders]
    means = [math.fsum(column) / len(column) for column in zip(*logs, strict=True)]
    shifts = [
        unread / total * max(abs(value - mean) for value in column)
        for column, mean in zip(zip(*logs, strict=True), means, strict=True)
    ]
    now = softmax(means)
    return all(_reach(means, shifts, option, sign, now) <= BOUND for option in range(len(means)) for sign in (1, -1))


def _reach(means: Sequence[float], shifts: Sequence[float], option: int, sign: int, now: Sequence[float]) -> float:
    moved = [
        mean + sign * shift if index == option else mean - sign * shift
        for index, (mean, shift) in enumerate(zip(means, shifts, strict=True))
    ]
    return abs(softmax(moved)[option] - now[option])
