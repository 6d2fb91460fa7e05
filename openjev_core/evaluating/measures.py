"""How good answers are: one number each.

An interval takes each of them a thousand times. Where scikit-learn has a measure, its checks of the input take longer
than that by an order of magnitude, so the formula stands here and a test holds it to scikit-learn's value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from attrs import frozen
from scipy.stats import rankdata

from openjev_core.evaluating.items import Floats, Items

WIDTH_BINS = 15
"""Bins of the usual calibration error: of equal width, as by Guo et al. 2017."""

COUNT_BINS = 10
"""Bins of the adaptive one: of equal count, so that each one's accuracy is as certain as another's. It is larger by
chance the fewer answers there are, and tells apart confidences that differ little."""

CALIBRATION_ERROR = (
    f"of the probability of the most probable outcome; over {WIDTH_BINS} bins of equal width, and over {COUNT_BINS} "
    "of equal count"
)
"""What the calibration errors are, for reports."""


@frozen(kw_only=True)
class Measure:
    """A measure.

    Attributes:
        name: In JSON.
        title: For people.
        better: Which way is better.
        of: Its value; NaN where it has none.
        applies: Whether it means anything for these items.
    """

    name: str
    title: str
    better: Literal["higher", "lower"]
    of: Callable[[Items], float]
    applies: Callable[[Items], bool]


def calibration_error(confidence: Floats, correct: Floats, bins: int = WIDTH_BINS) -> float:
    """Expected calibration error: the distance between confidence and accuracy, over bins of [0, 1] of equal width."""
    # A bin holds its upper end; 0 belongs to the first.
    of_each = np.maximum(np.ceil(confidence * bins).astype(np.int64) - 1, 0)
    gaps = np.bincount(of_each, weights=correct - confidence, minlength=bins)
    return float(np.abs(gaps).sum() / len(confidence))


def adaptive_calibration_error(confidence: Floats, correct: Floats, bins: int = COUNT_BINS) -> float:
    """The same over bins of equal count."""
    order = np.argsort(confidence, kind="stable")
    count, bins = len(order), min(bins, len(order))
    # As even as they can be, the larger ones first.
    starts = np.cumsum([0, *(count // bins + (position < count % bins) for position in range(bins - 1))])
    gaps = np.add.reduceat(correct[order] - confidence[order], starts)
    return float(np.abs(gaps).sum() / count)


def macro_f1(items: Items) -> float:
    """The mean over the labels that occur of each one's F1."""
    kinds = 1 + max(int(items.labels.max()), int(items.predictions.max()))
    occurring = np.bincount(items.labels, minlength=kinds)
    predicted = np.bincount(items.predictions[items.predictions >= 0], minlength=kinds)
    right = np.bincount(items.labels[items.correct], minlength=kinds)
    of_each = 2 * right / np.maximum(occurring + predicted, 1)
    return float(of_each[occurring > 0].mean())


def area_under_roc(items: Items) -> float:
    """The probability that a yes gets a higher P(yes) than a no; NaN when the labels are all the same."""
    yes = int(items.is_positive.sum())
    no = len(items) - yes
    if not (yes and no):
        return float("nan")
    # The Mann-Whitney statistic, ties counted as a half.
    ranks = rankdata(items.positive)[items.is_positive].sum()
    return float((ranks - yes * (yes + 1) / 2) / (yes * no))


def tells_probabilities(items: Items) -> bool:
    """Whether every answer gives a probability to each outcome."""
    return not bool(np.isnan(items.confidence).any())


MEASURES = (
    Measure(
        name="accuracy",
        title="accuracy",
        better="higher",
        of=lambda items: float(items.correct.mean()),
        applies=lambda _: True,
    ),
    Measure(
        name="macro_f1",
        title="macro-F1",
        better="higher",
        of=macro_f1,
        applies=lambda items: items.kinds in (("nominal",), ("binary",)),
    ),
    Measure(
        name="auroc",
        title="AUROC",
        better="higher",
        of=area_under_roc,
        applies=lambda items: items.kinds == ("binary",) and tells_probabilities(items),
    ),
    Measure(
        name="mae",
        title="mean absolute error (levels)",
        better="lower",
        of=lambda items: float(items.error.mean()),
        applies=lambda items: items.kinds == ("ordinal",),
    ),
    Measure(
        name="log_loss",
        title="log loss (nats)",
        better="lower",
        of=lambda items: float(items.log_loss.mean()),
        applies=tells_probabilities,
    ),
    Measure(
        name="brier",
        title="Brier score (0 to 2)",
        better="lower",
        of=lambda items: float(items.brier.mean()),
        applies=tells_probabilities,
    ),
    Measure(
        name="ece",
        title=f"calibration error ({WIDTH_BINS} equal widths)",
        better="lower",
        of=lambda items: calibration_error(items.confidence, items.correct.astype(np.float64)),
        applies=tells_probabilities,
    ),
    Measure(
        name="adaptive_ece",
        title=f"calibration error ({COUNT_BINS} equal counts)",
        better="lower",
        of=lambda items: adaptive_calibration_error(items.confidence, items.correct.astype(np.float64)),
        applies=tells_probabilities,
    ),
)
