"""Which orders of a readout's options are read."""

from __future__ import annotations

from typing import Literal

from openjev_core.question import Readout

Order = tuple[int, ...]
"""Position shown to position given: ``order[0]`` is the option that is shown first."""


def available_orders(readout: Readout) -> int:
    """How many orders of its options a readout allows."""
    if not readout.permute:
        return 1
    return 2 if readout.ordered else len(readout.options)


def orders_of(readout: Readout, count: int | Literal["full"]) -> tuple[Order, ...]:
    """The orders to read: as given first, then as many more as ``count`` and the readout allow.

    Unordered options are rotated, in steps as even as ``count`` lets them be; a rubric is reversed.
    """
    given = tuple(range(len(readout.options)))
    allowed = available_orders(readout)
    wanted = allowed if count == "full" else min(count, allowed)
    if readout.ordered:
        return (given, given[::-1])[:wanted]
    offsets = [index * len(given) // wanted for index in range(wanted)]
    return tuple(given[offset:] + given[:offset] for offset in offsets)
