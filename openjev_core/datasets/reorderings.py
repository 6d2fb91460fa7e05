"""Asking a question with its options in another order, whatever its type."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from openjev_core.datasets.shapes import Shape, shape_of
from openjev_core.datasets.targets import TargetShape
from openjev_core.errors import RequestError
from openjev_core.plugins.structuring import QuestionConverter

REVERSED = "reversed"
SHUFFLED = "shuffled"


@frozen
class Reordered:
    """A question whose options stand in another order.

    Attributes:
        wire: As on the wire.
        shape: How its answers are read.
        order: The given position of the option that stands first, second, ...
    """

    wire: Any
    shape: Shape
    order: tuple[int, ...]

    def given(self, outcome: int | None) -> int | None:
        """An outcome of this question as one of the question in its given order."""
        return None if outcome is None else self.order[outcome]


def reorderings(wire: Any, shape: Shape | TargetShape, converter: QuestionConverter, seed: str) -> dict[str, Reordered]:
    """The question with its options reversed and, from three options on, in a random order that is neither.

    Empty for questions whose options stand in no order that a client chooses (a yes and a no, the levels of a rubric)
    and for those of several readouts.

    Args:
        wire: The question as on the wire.
        shape: How its answers are read.
        converter: Knows the question types.
        seed: Chooses the random order, the same one every time.
    """
    if isinstance(shape, TargetShape) or len(shape.readouts) != 1 or shape.readouts[0].ordered:
        return {}
    given = tuple(range(shape.options))
    orders = {REVERSED: given[::-1]}
    if len(given) > 2:  # noqa: PLR2004 - two options have no third order
        chance = random.Random(seed)  # noqa: S311 - no secret
        shuffled = given
        while shuffled in (given, given[::-1]):
            shuffled = tuple(chance.sample(given, len(given)))
        orders[SHUFFLED] = shuffled
    found = {}
    for name, order in orders.items():
        reordered = reorder(wire, shape, order, converter)
        if reordered is None:
            return {}
        found[name] = reordered
    return found


def reorder(wire: Any, shape: Shape, order: Sequence[int], converter: QuestionConverter) -> Reordered | None:
    """The question with its options in another order; ``None`` where no field of it lists them.

    A field lists the options when putting its members in another order puts the readout's options in that order, and
    changes nothing else about them. That is tried, not assumed: a rubric's levels would get other numbers.
    """
    options = shape.readouts[0].options
    for candidate in _with_field_reordered(wire, order):
        try:
            other = shape_of(candidate, converter)
        except RequestError:
            continue
        if not isinstance(other, Shape) or len(other.readouts) != 1:
            continue
        if other.readouts[0].options == tuple(options[given] for given in order):
            return Reordered(candidate, other, tuple(order))
    return None


def _with_field_reordered(wire: Mapping[str, Any], order: Sequence[int]) -> Iterator[dict[str, Any]]:
    for name, value in wire.items():
        if isinstance(value, dict) and len(value) == len(order):
            members = list(value.items())
            yield {**wire, name: dict(members[given] for given in order)}
        elif isinstance(value, list) and len(value) == len(order):
            yield {**wire, name: [value[given] for given in order]}
