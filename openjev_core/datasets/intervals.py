"""Values with their 95% intervals, from numbers that come in rows.

The questions of one row share its state, so their mistakes go together: a row is one draw, however many questions it
asks. Every interval here rests on the spread between rows (Liang and Zeger 1986). `tests/bench/coverage.py` shows how
often each holds the truth; where a kind of interval was seen not to, there is none, and the reason is given instead.

statsmodels has the clustered standard error for regressions alone, and none of the intervals below for clustered rows;
the tests compare with it and with scipy where they have the same thing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from attrs import asdict, frozen
from numpy.typing import NDArray
from scipy import optimize, stats
from scipy.special import expit, logit

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEVEL = 0.95

FEWEST_CROWDED_ROWS = 10
"""Rows below which their spread says too little, where a row asks several questions, or two runs are compared."""

FEWEST_SKEWED_ROWS = 50
"""Rows below which the mean of a skewed number, such as the log loss of a good model, has no interval that holds: with
20 of them 87% did, since many such samples hold none of the few mistakes that make the mean."""

FEWEST_F1_ROWS = 20
"""Rows below which F1 has no interval that holds."""

FEWEST_OF_A_LABEL = 5
"""Rows of each label below which AUROC and F1 have no interval that holds."""


@frozen
class Estimate:
    """A value and its interval.

    Attributes:
        value: The value; ``None`` where it is not defined.
        low, high: The interval's ends, at :data:`LEVEL`; ``None`` where there is none.
        reason: Why there is none; ``None`` where there is one.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None

    def json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def row_sums(values: Floats, rows: Integers) -> Floats:
    """The sum of each row's values."""
    _, cluster = np.unique(rows, return_inverse=True)
    return np.asarray(np.bincount(cluster, weights=values), dtype=np.float64)


def standard_error(values: Floats, rows: Integers) -> float:
    """The standard error of the mean of values that come in rows; infinite for a single row.

    With one value per row this is the usual standard error. (Liang and Zeger 1986, with the correction for the number
    of clusters.)
    """
    sums = row_sums(values - values.mean(), rows)
    count = len(sums)
    return math.sqrt(count / (count - 1) * float((sums**2).sum())) / len(values) if count > 1 else math.inf


def share(hits: NDArray[np.bool_], rows: Integers) -> Estimate:
    """A share of questions, with Wilson's interval.

    Where a row has several questions, they count as the smaller number of independent ones that has the same standard
    error, and Student's t stands for the normal distribution (Dean and Pagano 2015).
    """
    count, different = len(hits), len(np.unique(rows))
    if count == 0:
        return Estimate(None, reason="there are no questions")
    value = float(hits.mean())
    if different == count:
        return Estimate(value, *_wilson(value, count, _normal()))
    if different < FEWEST_CROWDED_ROWS:
        return Estimate(value, reason=_few_rows(different, FEWEST_CROWDED_ROWS))
    error = standard_error(hits.astype(np.float64), rows)
    # Where all are alike, nothing tells how far the questions of a row go together: they count as one.
    independent = min(count, value * (1 - value) / error**2) if error > 0 else different
    return Estimate(value, *_wilson(value, independent, _student(different)))


def mean(values: Floats, rows: Integers) -> Estimate:
    """A mean, with Student's interval corrected for skewness by Hall's transformation (Hall 1992).

    Losses are skewed: a few certain mistakes make most of them, and the plain interval ends below the truth too often.
    """
    value, different = float(values.mean()), len(np.unique(rows))
    if different < FEWEST_SKEWED_ROWS:
        return Estimate(value, reason=_few_rows(different, FEWEST_SKEWED_ROWS))
    error, reach = standard_error(values, rows), _student(different)
    skewness = float(stats.skew(row_sums(values - value, rows))) if error > 0 else 0.0
    bend = skewness / math.sqrt(different)

    def undone(x: float) -> float:
        return float(3 / bend * (np.cbrt(1 + bend * (x - bend / 6)) - 1)) if abs(bend) > 1e-9 else x  # noqa: PLR2004

    return Estimate(value, value - error * undone(reach), value - error * undone(-reach))


def f1(value: float, influence: Floats, rows: Integers, fewest: tuple[str, int]) -> Estimate:
    """A mean of F1s, with the delta method's interval for its logit.

    Args:
        value: The mean.
        influence: How far each question moves it, times the number of questions.
        rows: The row of each question.
        fewest: The label that is right in the fewest rows, and how many these are.
    """
    different = len(np.unique(rows))
    if fewest[1] < FEWEST_OF_A_LABEL:
        return Estimate(value, reason=_few_of(*fewest))
    if different < FEWEST_F1_ROWS:
        return Estimate(value, reason=_few_rows(different, FEWEST_F1_ROWS))
    if not 0 < value < 1:
        return Estimate(value, reason="every answer is alike: all are right, or none is")
    reach = _student(different) * standard_error(influence, rows) / (value * (1 - value))
    return Estimate(value, float(expit(logit(value) - reach)), float(expit(logit(value) + reach)))


def auroc(value: float, influence: Floats, rows: Integers, positive: NDArray[np.bool_]) -> Estimate:
    """An area under the ROC curve, with the score interval on Hanley and McNeil's variance (Newcombe 2006, method 5).

    Where a row has several questions, the variance is taken as often as the clustered one contains the plain one.

    Args:
        value: The area.
        influence: How far each question moves it, times the number of questions (DeLong and others 1988).
        rows: The row of each question.
        positive: Whether yes is right.
    """
    of_yes, of_no = (len(np.unique(rows[which])) for which in (positive, ~positive))
    if min(of_yes, of_no) < FEWEST_OF_A_LABEL:
        return Estimate(value, reason=_few_of("yes" if of_yes < of_no else "no", min(of_yes, of_no)))
    different, crowding, reach = len(np.unique(rows)), 1.0, _normal()
    if different < len(rows):
        if different < FEWEST_CROWDED_ROWS:
            return Estimate(value, reason=_few_rows(different, FEWEST_CROWDED_ROWS))
        plain = standard_error(influence, np.arange(len(rows)))
        crowding = max(1.0, (standard_error(influence, rows) / plain) ** 2) if plain > 0 else len(rows) / different
        reach = _student(different)
    yes, no = int(positive.sum()), int((~positive).sum())
    half = (yes + no) / 2 - 1

    def too_far(area: float) -> float:
        spread = area * (1 - area) * (1 + half * (1 - area) / (2 - area) + half * area / (1 + area)) / (yes * no)
        return (value - area) ** 2 - reach**2 * crowding * spread

    # The value itself is never too far; at 0 and 1 it is at the edge, so the search begins beside it.
    beside = 1e-9
    return Estimate(
        value,
        0.0 if value == 0 else float(optimize.brentq(too_far, 0, value - beside)),
        1.0 if value == 1 else float(optimize.brentq(too_far, value + beside, 1)),
    )


def difference(
    value: float, influence: Floats, rows: Integers, differing: int, fewest: int = FEWEST_CROWDED_ROWS
) -> Estimate:
    """A difference of two runs over the same questions, with Student's interval on the differences of rows.

    Args:
        value: The difference.
        influence: How far each question moves it, times the number of questions.
        rows: The row of each question.
        differing: In how many rows the two do differ.
        fewest: Rows below which there is no interval that holds.
    """
    count = len(np.unique(rows))
    if count < fewest:
        return Estimate(value, reason=_few_rows(count, fewest))
    if differing < FEWEST_CROWDED_ROWS:
        msg = f"the two differ in {differing} rows, and an interval needs {FEWEST_CROWDED_ROWS}"
        return Estimate(value, reason=msg)
    reach = _student(count) * standard_error(influence, rows)
    return Estimate(value, value - reach, value + reach)


def sign_test(differences: Integers, rows: Integers) -> float:
    """How probable a sum as far from 0 is, were each row as likely to have its difference the other way round.

    Exact, and with one question per row McNemar's exact test.

    Args:
        differences: 1 where only the second run is right, -1 where only the first is, else 0.
        rows: The row of each.
    """
    sums = np.abs(row_sums(differences.astype(np.float64), rows)).astype(np.int64)
    reach = int(sums.sum())
    # Position p: the probability of the sum p - reach. Each row moves all of it up or down by its own difference.
    chances = np.zeros(2 * reach + 1)
    chances[reach] = 1.0
    for size in sums[sums > 0]:
        chances = (np.roll(chances, size) + np.roll(chances, -size)) / 2
    observed = abs(int(differences.sum()))
    far = np.abs(np.arange(-reach, reach + 1)) >= observed
    return min(1.0, float(chances[far].sum()))


def _wilson(value: float, count: float, reach: float) -> tuple[float, float]:
    """Wilson's interval of a share; scipy's takes whole numbers of trials and the normal distribution alone."""
    middle = (value + reach**2 / (2 * count)) / (1 + reach**2 / count)
    half = reach / (1 + reach**2 / count) * math.sqrt(value * (1 - value) / count + reach**2 / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def _normal() -> float:
    return float(stats.norm.ppf((1 + LEVEL) / 2))


def _student(rows: int) -> float:
    return float(stats.t.ppf((1 + LEVEL) / 2, rows - 1))


def _few_rows(found: int, needed: int) -> str:
    return f"{found} rows are too few: an interval needs {needed}"


def _few_of(label: str, found: int) -> str:
    return f"{label!r} is right in {found} rows, and an interval needs {FEWEST_OF_A_LABEL}"
