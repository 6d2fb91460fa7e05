"""Intervals of measures: by bootstrap over rows, and Wilson's for shares."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen
from scipy import stats

from openjev_core.datasets.measures import Integers, Items

RESAMPLES = 999
LEVEL = 0.95
SEED = 0


@frozen
class Estimate:
    """A value and its interval.

    Attributes:
        value: The value; ``None`` where it is not defined.
        low, high: The interval's ends, at :data:`LEVEL`; ``None`` where too little data is there to tell.
    """

    value: float | None
    low: float | None
    high: float | None

    def json(self) -> dict[str, float | None]:
        """As JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}


def estimate(items: Items, measure: Callable[[Items], float]) -> Estimate:
    """A measure of items, with its interval.

    Rows are resampled, not questions: the questions of one row share its state, so their mistakes are related.
    """
    clusters = Clusters(items.rows)
    return _bootstrapped(len(clusters), lambda rows: measure(items.take(clusters.members(rows))))


def paired_difference(before: Items, after: Items, measure: Callable[[Items], float]) -> Estimate:
    """``measure(after) - measure(before)``, with its interval.

    Args:
        before: Questions as answered in one way.
        after: The same questions, in the same order, as answered in another: each resample takes the same rows of
            both, so what is hard about a row cancels.
        measure: The measure.
    """
    clusters = Clusters(before.rows)

    def difference(rows: Integers) -> float:
        members = clusters.members(rows)
        return measure(after.take(members)) - measure(before.take(members))

    return _bootstrapped(len(clusters), difference)


def share(hits: int, count: int) -> Estimate:
    """A share of independent trials, with its Wilson interval."""
    if count == 0:
        return Estimate(None, None, None)
    interval = stats.binomtest(hits, count).proportion_ci(LEVEL, method="wilson")
    return Estimate(hits / count, float(interval.low), float(interval.high))


class Clusters:
    """Which items belong to which row."""

    def __init__(self, rows: Integers) -> None:
        self._order = np.argsort(rows, kind="stable")
        _, self._starts, self._sizes = np.unique(rows[self._order], return_index=True, return_counts=True)

    def __len__(self) -> int:
        return len(self._starts)

    def members(self, clusters: Integers) -> Integers:
        """The positions of the items of some rows, repetitions included."""
        sizes = self._sizes[clusters]
        ends = np.cumsum(sizes)
        # 0, 1, 2, ... within each cluster.
        within = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes)
        return np.asarray(self._order[np.repeat(self._starts[clusters], sizes) + within])


def _bootstrapped(count: int, statistic: Callable[[Any], float]) -> Estimate:
    everything = np.arange(count)
    value = statistic(everything)
    if math.isnan(value):
        return Estimate(None, None, None)
    if count < 2:  # noqa: PLR2004 - one row has no spread
        return Estimate(value, None, None)
    with warnings.catch_warnings():
        # A statistic that never varies has no width, and one that is undefined in some resamples has no interval.
        warnings.simplefilter("ignore")
        found = stats.bootstrap(
            (everything,),
            statistic,
            n_resamples=RESAMPLES,
            confidence_level=LEVEL,
            method="percentile",
            vectorized=False,
            rng=np.random.default_rng(SEED),
        )
    low, high = float(found.confidence_interval.low), float(found.confidence_interval.high)
    return Estimate(value, None, None) if math.isnan(low) or math.isnan(high) else Estimate(value, low, high)
