"""Rank: items in order, from pairwise comparisons read in both orders."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from attrs import frozen

from openjev_core import (
    Content,
    Distribution,
    InvalidQuestion,
    Option,
    QuestionType,
    Readout,
    content_text,
    hookimpl,
    question_text,
)
from openjev_rank.bradley_terry import strengths

FEWEST, MOST = 2, 12
WITHOUT_INSTRUCTIONS = "Which of the two fits the material better?"


@frozen(kw_only=True)
class Rank:
    """A question whose answer is an order.

    Attributes:
        criteria: 2 to 12 item names, each with a description; null lets the name speak for itself.
        instructions: What decides between two items; the better one comes first. A general question when absent.
    """

    criteria: dict[str, Content | None]
    instructions: Content | None = None


@frozen(kw_only=True)
class RankAnswer:
    """The answer to a rank question.

    Attributes:
        order: Item names, best first.
        scores: Item name to its Bradley-Terry strength; they sum to 1, and i beats j with probability
            score_i / (score_i + score_j).
        consistency: The share of pairs whose comparison, both orders averaged, agrees with ``order``, in [0, 1]. Below
            1, some comparisons contradict each other (a beats b, b beats c, c beats a).
        x_position_bias: How much more often than half the item shown first won, in [-0.5, 0.5]; near 0 is good.
    """

    order: list[str]
    scores: dict[str, float]
    consistency: float
    x_position_bias: float


def readouts(question: Rank) -> Iterable[Readout]:
    """Two readouts per pair, one for each order, so that a preference for the first place cancels out."""
    count = len(question.criteria)
    if not FEWEST <= count <= MOST:
        raise InvalidQuestion(f"a rank question takes {FEWEST} to {MOST} items, found {count}", ("criteria",))
    asked = question_text(question.instructions, WITHOUT_INSTRUCTIONS)
    items = {name: content_text(name if text is None else text) for name, text in question.criteria.items()}
    for first, second in itertools.permutations(items, 2):
        options = (Option(key=first, text=items[first]), Option(key=second, text=items[second]))
        yield Readout(key=(first, second), text=asked, options=options, loc=("criteria",), permute=False)


def reduce(question: Rank, distributions: Sequence[Distribution]) -> RankAnswer:
    """Fit strengths to the comparisons."""
    names = list(question.criteria)
    wins = dict.fromkeys(itertools.permutations(names, 2), 0.0)
    for distribution in distributions:
        first, second = (str(option.key) for option in distribution.readout.options)
        wins[first, second] += distribution[first] / 2
        wins[second, first] += distribution[second] / 2
    scores = strengths(names, wins)
    order = sorted(names, key=lambda name: -scores[name])
    pairs = list(itertools.combinations(order, 2))
    agreeing = [
        1.0 if wins[pair] > wins[pair[::-1]] else 0.5 if wins[pair] == wins[pair[::-1]] else 0.0 for pair in pairs
    ]
    first_place = [distribution.probabilities[0] for distribution in distributions]
    return RankAnswer(
        order=order,
        scores=scores,
        consistency=sum(agreeing) / len(pairs),
        x_position_bias=sum(first_place) / len(first_place) - 0.5,
    )


def target(question: Rank, label: Any, readout: Readout) -> str:
    """A label is all items in their right order, best first: a list, or a text with commas between them."""
    order = [name.strip() for name in label.split(",")] if isinstance(label, str) else label
    if not isinstance(order, list) or set(map(str, order)) != set(question.criteria) or len(set(order)) != len(order):
        raise InvalidQuestion(f"is no order of these items: {', '.join(question.criteria)}")
    first, second = readout.key
    return str(first if order.index(first) < order.index(second) else second)


RANK = QuestionType(
    name="rank",
    summary="2 to 12 items in order, best first, from pairwise comparisons.",
    api=1,
    question=Rank,
    answer=RankAnswer,
    readouts=readouts,
    reduce=reduce,
    target=target,
    examples=(
        Rank(
            instructions="Which of the two should be dealt with first?",
            criteria={
                "outage": "Nobody can log in",
                "typo": "A spelling mistake in the footer",
                "slow": "Pages load slowly",
            },
        ),
    ),
)


@hookimpl
def openjev_question_types() -> Sequence[QuestionType[Any, Any]]:
    """Register Rank."""
    return [RANK]
