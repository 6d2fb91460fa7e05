"""When an adaptive evaluation may stop reading further orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from openjev_core.distribution import floored_logs, softmax

BOUND = 0.02
"""How far a probability may still move for a readout to count as settled."""


def settled(orders: Sequence[Sequence[float]], total: int, temperature: float) -> bool:
    """Whether reading the remaining orders could move no probability by more than :data:`BOUND`.

    Assumed is that an unread order departs from the mean, option by option in log space, no further than the most
    deviant order read so far. Under that, an option's averaged log-probability moves by at most
    ``(unread / total) * deviation``; the bound is checked for each option with all shifts against it.

    Args:
        orders: Scores of the orders read so far, in the options' given order; one alone settles nothing.
        total: How many orders there are.
        temperature: As for :func:`~openjev_core.distribution.softmax`.
    """
    unread = total - len(orders)
    if unread == 0:
        return True
    if len(orders) == 1:
        return False
    columns = list(zip(*(floored_logs(order, temperature) for order in orders), strict=True))
    means = [math.fsum(column) / len(column) for column in columns]
    shifts = [
        unread / total * max(abs(value - mean) for value in column) for column, mean in zip(columns, means, strict=True)
    ]
    highest = max(means)
    up = [math.exp(mean + shift - highest) for mean, shift in zip(means, shifts, strict=True)]
    down = [math.exp(mean - shift - highest) for mean, shift in zip(means, shifts, strict=True)]
    reaches = zip(up, sums_of_others(down), down, sums_of_others(up), softmax(means), strict=True)
    return all(
        abs(more / (more + against) - now) <= BOUND and abs(less / (less + beside) - now) <= BOUND
        for more, against, less, beside, now in reaches
    )


def sums_of_others(values: Sequence[float]) -> list[float]:
    """For each value the sum of all the others.

    Added up from both ends: subtracting a large value from the whole sum would lose the small ones.
    """
    before = list(accumulate(values, initial=0.0))
    behind = list(accumulate(reversed(values), initial=0.0))
    return [left + right for left, right in zip(before[:-1], behind[-2::-1], strict=True)]
