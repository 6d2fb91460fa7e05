"""A range cut into bins, and what a distribution over them says."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression


def falling(values: Sequence[float]) -> list[float]:
    """The non-increasing sequence that is nearest to ``values`` in squares (isotonic regression)."""
    return [float(value) for value in isotonic_regression(values, increasing=False).x]


@frozen
class Ladder:
    """A range cut into equal bins.

    Attributes:
        minimum, maximum: The range.
        bins: How many.
    """

    minimum: float
    maximum: float
    bins: int

    @property
    def borders(self) -> list[float]:
        """The bins' borders, from ``minimum`` to ``maximum``: one more than there are bins."""
        return [float(border) for border in np.linspace(self.minimum, self.maximum, self.bins + 1)]

    def mean(self, probabilities: Sequence[float]) -> float:
        """The expected value, with each bin's mass spread evenly over it."""
        centres = ((low + high) / 2 for low, high in zip(self.borders, self.borders[1:], strict=False))
        return math.fsum(p * centre for p, centre in zip(probabilities, centres, strict=True))

    def quantile(self, probabilities: Sequence[float], share: float) -> float:
        """The value below which ``share`` of the mass lies, with each bin's mass spread evenly over it.

        Where empty bins make every value of a stretch qualify, it is the middle of the stretch.
        """
        below = np.concatenate([[0.0], np.cumsum(probabilities)])
        below[-1] = 1.0  # what rounding left open
        first = self._value_at(below, share, int(np.searchsorted(below, share, side="left")))
        last = self._value_at(below, share, int(np.searchsorted(below, share, side="right")))
        return (first + last) / 2

    def _value_at(self, below: NDArray[np.float64], share: float, place: int) -> float:
        low, high = self.borders[place - 1], self.borders[place]
        return float(low + (high - low) * (share - below[place - 1]) / (below[place] - below[place - 1]))
