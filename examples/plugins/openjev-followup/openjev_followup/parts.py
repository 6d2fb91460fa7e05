"""Questions inside a question: each is asked by its own type, under the name of the part that it is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import islice
from typing import Any

from attrs import define, evolve, field, frozen

from openjev_core import (
    Asking,
    Distribution,
    InvalidQuestion,
    QuestionConverter,
    QuestionType,
    Readout,
    RequestError,
    Rounds,
)

MOST = 1000
"""Readouts that a part may ask for in one round."""


@frozen
class Within:
    """The key of a readout of a part.

    Attributes:
        part: Where the part stands in the question.
        type: The name of its question type.
        key: The readout's own key.
    """

    part: tuple[str, ...]
    type: str
    key: Hashable


@define(eq=False)
class Part:
    """A question inside a question.

    Attributes:
        loc: Where it stands in the question.
        type: Its question type.
        question: An instance of that type's question class.
        asking: Its readouts, while they are asked.
        found: What its readouts got so far, with their own keys.
    """

    loc: tuple[str, ...]
    type: QuestionType[Any, Any]
    question: Any
    asking: Asking = field(init=False)
    found: list[Distribution] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.asking = Asking(self.type, self.question)

    def next_round(self) -> list[Readout]:
        """The readouts of the next round, with their own keys; none when it asks no more.

        Raises:
            InvalidQuestion: The question makes no sense, or asks for too much at once.
        """
        waits = self.asking.waits
        if self.asking.rounds and not waits:
            return []
        try:
            readouts = list(islice(self.asking.pull(self.found[len(self.found) - waits :]), MOST + 1))
        except RequestError as error:
            raise inside(error, self.loc) from error
        if len(readouts) > MOST:
            raise InvalidQuestion(f"asks for more than {MOST} readouts at once", self.loc)
        return readouts

    def outward(self, readout: Readout) -> Readout:
        """A readout as the whole question asks it."""
        return evolve(readout, key=Within(self.loc, self.type.name, readout.key), loc=(*self.loc, *readout.loc))

    def answer(self, converter: QuestionConverter, distributions: Sequence[Distribution]) -> dict[str, Any]:
        """Its own type's answer, as JSON."""
        return converter.answer(self.type, self.type.reduce(self.question, distributions))


def part_of(converter: QuestionConverter, loc: tuple[str, ...], question: Any) -> Part:
    """A part, from its question's JSON.

    Raises:
        InvalidQuestion: It is no question of an installed type.
    """
    try:
        return Part(loc, *converter.question(question))
    except RequestError as error:
        raise inside(error, loc) from error


def inside(error: RequestError, loc: tuple[str, ...]) -> InvalidQuestion:
    """The first problem of a part, at its place in the whole question."""
    problem = error.problems[0]
    return InvalidQuestion(problem.msg, (*loc, *problem.loc))


def own(distribution: Distribution) -> Distribution:
    """A distribution as the part's own type expects it."""
    readout = distribution.readout
    return evolve(distribution, readout=evolve(readout, key=readout.key.key))


def ask(parts: Sequence[Part], first: Sequence[Sequence[Readout]]) -> Rounds:
    """Ask parts together, round by round. What they got is in their ``found`` afterwards.

    Args:
        parts: What is asked.
        first: The first round of each.
    """
    rounds = list(zip(parts, first, strict=True))
    while rounds:
        distributions = iter((yield [part.outward(readout) for part, readouts in rounds for readout in readouts]))
        for part, readouts in rounds:
            part.found.extend(map(own, islice(distributions, len(readouts))))
        rounds = [(part, readouts) for part, _ in rounds if (readouts := part.next_round())]


def undecided(part: Part) -> list[Distribution]:
    """What a part would get if nothing were preferred, with its own keys."""
    sample = Part(part.loc, part.type, part.question)
    try:
        while readouts := sample.next_round():
            counts = [len(readout.options) for readout in readouts]
            uniform = [(1 / count,) * count for count in counts]
            sample.found.extend(Distribution(*one, 0.0) for one in zip(readouts, uniform, strict=True))
            if len(sample.found) > MOST:
                break
    finally:
        sample.asking.close()
    return sample.found
