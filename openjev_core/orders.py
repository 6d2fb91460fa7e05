"""The orders in which a readout's options are shown: how many are asked for, and which ones these are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, cast

from openjev_core.errors import RequestError
from openjev_core.question import Readout

Orders = int | Literal["full"]
"""How many orders of its options a readout is read in: a number, or all there are.

Reading some first and stopping where they agree was tried and taken out. Orders that are close to each other agree
though both are wrong, and no bound on what the others would say holds without reading them.
"""

Order = tuple[int, ...]
"""Position shown to position given: ``order[0]`` is the option that is shown first."""


def checked_orders(value: Any) -> Orders:
    """``value``, if it is a valid number of orders.

    Raises:
        ValueError: It is not. The message says what is accepted.
    """
    if value == "full" or (type(value) is int and value >= 1):
        return cast("Orders", value)
    raise ValueError("an integer from 1 up, or full")


def available_orders(readout: Readout) -> int:
    """How many orders of its options a readout allows."""
    if not readout.permute:
        return 1
    return 2 if readout.ordered else len(readout.options)


def orders_of(readout: Readout, wanted: Orders) -> tuple[Order, ...]:
    """The orders to read: as many as are wanted and as the readout allows; none of an option alone, which is certain.

    One order is the given one. Of a rubric, two are as given and reversed. More than one of unordered options are
    rotations of their *canonical* order, sorted by text (by key where texts are alike), in steps as even as their
    number lets them be. So each option stands in each place equally often when all are read, which cancels a
    preference for a place; and whatever order a client lists the options in, the same prompts are read, so that order
    cannot change the answer at all. Rotations of the given order would do only the former: those of a reversed list
    are other prompts.
    """
    given = tuple(range(len(readout.options)))
    if len(given) == 1:
        return ()
    allowed = available_orders(readout)
    count = min(wanted, allowed) if isinstance(wanted, int) else allowed
    if count == 1:
        return (given,)
    if readout.ordered:
        return given, given[::-1]
    canonical = canonical_order(readout)
    offsets = [index * len(given) // count for index in range(count)]
    return tuple(canonical[offset:] + canonical[:offset] for offset in offsets)


def canonical_order(readout: Readout) -> Order:
    """The order of a readout's options that does not depend on how a client lists them, where they may be listed so.

    The given one where it carries meaning or is fixed; else sorted by text, by key where texts are alike.
    """
    given = range(len(readout.options))
    if readout.ordered or not readout.permute:
        return tuple(given)
    options = readout.options
    return tuple(sorted(given, key=lambda position: (options[position].text, repr(options[position].key))))


def check_available(wanted: Orders, readouts: Iterable[Readout]) -> None:
    """Refuse a request that asks for more orders than any of its readouts has.

    Raises:
        RequestError: It does.
    """
    if not isinstance(wanted, int):
        return
    most = max((available_orders(readout) for readout in readouts), default=wanted)
    if wanted > most:
        msg = f'asks for {wanted} orders; the questions of this request have at most {most}; "full" reads all there are'
        raise RequestError.at(("x_orders",), msg)


def check_calibrated(wanted: Orders, fitted: Orders) -> None:
    """Refuse other orders than those that the server's calibration was fitted for.

    Raises:
        RequestError: The probabilities would be corrected for something that they are not.
    """
    if wanted == fitted:
        return
    msg = (
        f"asks for {wanted!r} where this server's calibration was fitted for orders of {fitted!r}; leave x_orders out, "
        "or ask a server without OPENJEV_CALIBRATION"
    )
    raise RequestError.at((), msg)
