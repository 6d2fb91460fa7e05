"""Thresholds with a promise: of the answers at or above one, at most a given share is wrong, with a given confidence.

This is Learn then Test (Angelopoulos and others 2021), for a single risk: a grid of thresholds fixed beforehand, tested
from the highest down, each by the exact binomial test, until one fails. Tested so, one after the other, the thresholds
need no correction for their number (fixed sequence testing; Bauer 1991). Rows are draws and the questions of a row are
not, so of each row one answer counts, drawn at random. mapie has the same test for its own classifiers' outputs; it
knows no rows, and its sequence ends at the highest threshold where that keeps too few answers to pass.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from attrs import asdict, frozen
from numpy.typing import NDArray
from scipy import stats

from openjev_core.datasets.items import Floats, Integers

GRID = (
    0.999, 0.995, 0.99, 0.985, 0.98, 0.97, 0.96, 0.94, 0.92, 0.9,
    0.88, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.0,
)  # fmt: skip
"""Thresholds on the probability of an answer, highest first; 0 keeps every answer."""

SEED = 0

MOST_ROWS = 1_000_000
"""Rows beyond which asking for more is no advice."""


@frozen
class Threshold:
    """A threshold and what it rests on.

    Attributes:
        share: The share of right answers that is promised.
        confidence: How sure the promise is.
        threshold: The lowest one that can be promised; ``None`` when there is none.
        answers: Answers that were looked at, one of each row.
        kept: How many of them are at or above it.
        wrong: How many of those are wrong.
        more: Rows that it would take about, beyond those there are, where there is no threshold; ``None`` where it is
            out of reach, since as many answers are wrong at every threshold.
    """

    share: float
    confidence: float
    threshold: float | None
    answers: int
    kept: int = 0
    wrong: int = 0
    more: int | None = None

    @property
    def coverage(self) -> float:
        """The share of answers that are kept."""
        return self.kept / self.answers if self.answers else 0.0

    def json(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "coverage": self.coverage}

    @property
    def words(self) -> str:
        """What it says, in words."""
        if self.threshold is not None:
            return (
                f"probability {self.threshold:g} or more, which keeps {self.coverage:.0%}; "
                f"{self.wrong} of the {self.kept} kept are wrong"
            )
        if self.more is None:
            return f"not with this model, as far as {self.answers} rows tell: at every threshold too many are wrong"
        return f"not with these {self.answers} rows; about {self.more} more"


def promised(
    probability: Floats, wrong: NDArray[np.bool_], rows: Integers, share: float, confidence: float
) -> Threshold:
    """The lowest threshold that can be promised.

    A threshold that keeps too few answers to pass even with one of them wrong is passed over; where all keep too few
    for that, one that keeps too few to pass with none. Both look at how many are kept and not at what is wrong, so
    neither spends confidence.

    Args:
        probability: Of each answer: that of its most probable outcome.
        wrong: Whether the answer is wrong.
        rows: The row of each answer.
        share: The share of right answers to promise, below 1.
        confidence: How sure the promise has to be.
    """
    chosen = one_of_each_row(rows)
    probability, wrong = probability[chosen], wrong[chosen]
    kept = np.array([(probability >= threshold).sum() for threshold in GRID])
    mistakes = np.array([wrong[probability >= threshold].sum() for threshold in GRID])
    doubt = stats.binom.cdf(mistakes, kept, 1 - share)
    tested: list[int] = []
    for spare in (1, 0):
        tested = [i for i, count in enumerate(kept) if stats.binom.cdf(spare, count, 1 - share) <= 1 - confidence]
        if tested:
            break
    passed = None
    for position in tested:
        if doubt[position] > 1 - confidence:
            break
        passed = position
    if passed is None:
        more = _more(kept, mistakes, len(chosen), 1 - share, 1 - confidence)
        return Threshold(share, confidence, None, len(chosen), more=more)
    return Threshold(share, confidence, GRID[passed], len(chosen), int(kept[passed]), int(mistakes[passed]))


def one_of_each_row(rows: Integers) -> Integers:
    """The position of one question of each row, drawn at random and always the same."""
    shuffled = np.random.default_rng(SEED).permutation(len(rows))
    _, first = np.unique(rows[shuffled], return_index=True)
    return np.asarray(np.sort(shuffled[first]))


def _more(kept: Integers, mistakes: Integers, rows: int, risk: float, doubt: float) -> int | None:
    """Rows that it would take about, were as many wrong and as many kept among them as among these."""
    found = []
    for count, wrong in zip(kept, mistakes, strict=True):
        rate = (wrong + 0.5) / (count + 1)
        if not count or rate >= risk:
            continue
        needed = int(count)
        while needed * rows / count < MOST_ROWS and stats.binom.cdf(math.ceil(rate * needed), needed, risk) > doubt:
            needed = math.ceil(needed * 1.05) + 1
        found.append(math.ceil(needed * rows / count) - rows)
    fitting = [more for more in found if more < MOST_ROWS]
    return max(1, min(fitting)) if fitting else None
