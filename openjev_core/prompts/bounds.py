"""What the rendering of a chat template may do: so many steps, and so much that it makes.

Rounds of loops, calls, filters and comparisons are steps, and more of them where they go through long texts or lists.
Every text, list and mapping that they make counts by its characters and elements, whether it is written or not. Both
bounds are higher for messages that are more.

It keeps a template with a fault from holding the server. It is no fence around a program that means harm: such a model
should not be run at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import define, field

MAX_STEPS, STEPS_PER_MESSAGE = 250_000, 250
"""Upper bound on the steps of one rendering, and how many more for each message. Those of known models take some 40
for a message."""

MAX_MADE, MADE_PER_CHARACTER = 8 * 1024 * 1024, 32
"""Upper bound on the characters that a rendering makes, and how many more for each character of the messages; and a
template may write all of its own words for each message. Those of known models make each text some ten times."""

TEXT_STEP, LIST_STEP = 4096, 16
"""Characters of a text, and elements of a list, that are gone through in one step."""


class TemplateRefusal(Exception):
    """A template raised on these messages. The message is the template's own reason."""


@define
class Bounds:
    """What one rendering has done so far.

    Attributes:
        most_steps: Upper bound on the steps.
        most_made: Upper bound on the characters and elements that are made.
        steps: Steps taken.
        made: Characters and elements made.
        weights: Id of a list or mapping to itself, which keeps the id its own, and to the characters and elements that
            it would be written with. One that stands in another twice counts twice.
    """

    most_steps: int = MAX_STEPS
    most_made: int = MAX_MADE
    steps: int = 0
    made: int = 0
    weights: dict[int, tuple[Any, int]] = field(factory=dict)

    def step(self, count: int = 1) -> None:
        """Count steps.

        Raises:
            TemplateRefusal: There are too many.
        """
        self.steps += count
        if self.steps > self.most_steps:
            raise TemplateRefusal(f"its loops, calls and filters take more than {self.most_steps:,} steps")

    def grow(self, count: int) -> None:
        """Count characters that are made, or that are going to be.

        Raises:
            TemplateRefusal: There are too many.
        """
        self.made += count
        if self.made > self.most_made:
            raise TemplateRefusal(f"it makes more than {self.most_made:,} characters")

    def weigh(self, value: Any) -> int:
        """The characters and elements of a value that is written."""
        if isinstance(value, str):
            return len(value)
        if not isinstance(value, (list, tuple, dict)):
            return 1
        known = self.weights.get(id(value))
        if known is None:
            inner = [*value, *value.values()] if isinstance(value, dict) else value
            known = value, len(value) + sum(map(self.weigh, inner))
            self.weights[id(value)] = known
        return known[1]

    def see(self, value: Any, *, deep: bool = False) -> Any:
        """Count that a value is gone through: ``deep`` with all that is in it."""
        if isinstance(value, str):
            self.step(1 + len(value) // TEXT_STEP)
        elif isinstance(value, (list, tuple, dict, range)):
            self.step(1 + len(value) // LIST_STEP + (self.weigh(value) // TEXT_STEP if deep else 0))
        else:
            self.step()
        return value

    def make(self, value: Any) -> Any:
        """Count a value that was made."""
        if isinstance(value, (str, list, tuple, dict)):
            self.see(value)
            self.grow(self.weigh(value))
        return value


def bounds_for(messages: Sequence[Any], source: str) -> Bounds:
    """The bounds of a rendering of these messages by a template of this source."""
    bounds = Bounds(MAX_STEPS + STEPS_PER_MESSAGE * len(messages))
    bounds.most_made += MADE_PER_CHARACTER * sum(map(bounds.weigh, messages)) + len(source) * len(messages)
    return bounds
