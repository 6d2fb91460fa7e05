"""How a label of a data file is compared with an answer that comes from many readouts, by the type's own `target`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field

from openjev_core.asking import asked_of
from openjev_core.datasets.places import listed
from openjev_core.errors import InvalidQuestion, PluginError, RequestError
from openjev_core.json_document import compact
from openjev_core.plugins.forms import fields_of
from openjev_core.question import Distribution, QuestionType, Readout

OTHER = "(another answer)"
"""The outcome that stands for every answer that no label of the file means."""

MOST_READOUTS = 10_000
"""Readouts that the right answer of a question may take."""


@define(eq=False)
class TargetShape:
    """How to read the labels and answers of one question whose outcomes are too many to list.

    An outcome is what one label of the file means. It is found by asking the question's type with all the probability
    on the option that its ``target`` names, so that a type that asks on asks what it would ask on the right way.

    Attributes:
        type: The question type's name.
        headline: The answer's field that a label is compared with.
        kind: The kind of its answer, for any question of this class.
        positive: There is no yes among its outcomes.
        readouts: It lists none.
    """

    _type: QuestionType[Any, Any]
    _question: Any
    headline: str
    _why: str
    kind: str = field(default="joint", init=False)
    positive: None = field(default=None, init=False)
    readouts: tuple[Readout, ...] = field(default=(), init=False)
    _labels: list[Any] = field(factory=list, init=False)
    _right: list[Mapping[int, int]] = field(factory=list, init=False)
    _asked: list[tuple[Readout, ...]] = field(factory=list, init=False)

    @property
    def type(self) -> str:
        """The question type's name."""
        return self._type.name

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the type's answers."""
        return tuple(one.name for one in fields_of(self._type.answer))

    @property
    def options(self) -> int:
        """How many outcomes there are: those of the labels so far, and one for every other answer."""
        return len(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each outcome."""
        return (*(one if isinstance(one, str) else compact(one) for one in self._labels), OTHER)

    def outcome_of(self, label: Any) -> int:
        """The outcome that a label means. One that means the same as an earlier label is the same outcome.

        Raises:
            RequestError: The label means nothing to the type, or the type has no ``target``.
            PluginError: The type broke its contract.
        """
        asked: list[Readout] = []
        right: dict[int, int] = {}

        def certain(readout: Readout, index: int) -> Distribution:
            asked.append(readout)
            count = len(readout.options)
            if (position := self.position(label, readout)) is None:
                return Distribution(readout, (1 / count,) * count, 0.0)
            right[index] = position
            return Distribution(readout, tuple(float(i == position) for i in range(count)), 1.0)

        for _ in asked_of(self._type, self._question, certain, MOST_READOUTS):
            pass
        if not right:
            msg = f"the label {label!r:.80} says nothing about what this {self.type} question asks"
            raise RequestError.at((), msg)
        for index, (readouts, known) in enumerate(zip(self._asked, self._right, strict=True)):
            if known == right and [one.key for one in readouts] == [one.key for one in asked]:
                return index
        self._labels.append(label)
        self._right.append(right)
        self._asked.append(tuple(asked))
        return len(self._labels) - 1

    def position(self, label: Any, readout: Readout) -> int | None:
        """The position of the right option of a readout; ``None`` where the label says nothing about it.

        Raises:
            RequestError, PluginError: As for :meth:`outcome_of`.
        """
        if self._type.target is None:
            raise RequestError.at((), self._why)
        try:
            key = self._type.target(self._question, label, readout)
        except InvalidQuestion as error:
            raise RequestError.at((), f"the label {label!r:.80} {error}") from None
        except Exception as error:
            raise PluginError(self.type, f"target raised {type(error).__name__}: {error}") from error
        if key is None:
            return None
        keys = [option.key for option in readout.options]
        if key not in keys:
            rule = f"target gave {key!r:.80}, which is the key of no option; there are {listed(map(str, keys))}"
            raise PluginError(self.type, rule)
        return keys.index(key)

    def positions(self, outcome: int, readouts: Sequence[Readout]) -> list[int | None]:
        """The position of the right option of each readout that was read, where the outcome says it."""
        return [self.position(self._labels[outcome], readout) for readout in readouts]

    def labelled(self, outcome: int) -> int:
        """How many readouts that are read an outcome says the right option of."""
        return sum(len(self._asked[outcome][index].options) > 1 for index in self._right[outcome])

    def chance(self, outcome: int) -> float:
        """The share of blind guesses that are this outcome."""
        return 1 / math.prod(len(self._asked[outcome][index].options) for index in self._right[outcome])

    def predicted(self, answer: Mapping[str, Any], label: int | None = None) -> int:
        """The outcome that an answer stands for: the one that means the same, were the answer a label.

        Args:
            answer: As on the wire.
            label: The right outcome, which is tried first.
        """
        said = answer.get(self.headline)
        known = range(len(self._labels))
        for outcome in known if label is None else (label, *known):
            if self._means(said, outcome):
                return outcome
        return len(self._labels)

    def _means(self, said: Any, outcome: int) -> bool:
        try:
            return all(
                self.position(said, readout) == self._right[outcome].get(index)
                for index, readout in enumerate(self._asked[outcome])
            )
        except RequestError:
            return False

    def probabilities(self, answer: Mapping[str, Any]) -> None:
        """None: an answer from many readouts does not say how probable it is as a whole."""
