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
    """The orders to read: as many as ``count`` and the readout allow.

    One order is the given one. Of a rubric, two are as given and reversed. More than one of unordered options are
    rotations of their *canonical* order, sorted by text (by key where texts are alike), in steps as even as ``count``
    lets them be. So each option stands in each place equally often when all are read, which cancels a preference for
    a place; and whatever order a client lists the options in, the same prompts are read, so that order cannot change
    the answer at all. Rotations of the given order would do only the former: those of a reversed list are other
    prompts.
    """
    given = tuple(range(len(readout.options)))
    allowed = available_orders(readout)
    wanted = allowed if count == "full" else min(count, allowed)
    if wanted == 1:
        return (given,)
    if readout.ordered:
        return given, given[::-1]
    options = readout.options
    canonical = tuple(sorted(given, key=lambda position: (options[position].text, repr(options[position].key))))
    offsets = [index * len(given) // wanted for index in range(wanted)]
    return tuple(canonical[offset:] + canonical[:offset] for offset in offsets)
