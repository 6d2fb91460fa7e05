"""How good answers are: one number each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from attrs import frozen
from sklearn.metrics import f1_score, roc_auc_score

from openjev_core.evaluating.items import Floats, Items

BINS = 10
"""Bins of a calibration error: of equal count, so that each one's accuracy is as certain as another's."""


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


def calibration_error(confidence: Floats, correct: Floats, bins: int = BINS) -> float:
    """Expected calibration error: the mean distance between confidence and accuracy over bins of equal count."""
    parts = np.array_split(np.argsort(confidence, kind="stable"), min(bins, len(confidence)))
    gaps = [len(part) * abs(correct[part].mean() - confidence[part].mean()) for part in parts]
    return float(sum(gaps) / len(confidence))


def macro_f1(items: Items) -> float:
    """The mean over the labels that occur of each one's F1."""
    occurring = np.unique(items.labels)
    score = f1_score(items.labels, items.predictions, labels=occurring, average="macro", zero_division=0)
    return float(score)


def area_under_roc(items: Items) -> float:
    """The probability that a yes gets a higher P(yes) than a no; NaN when the labels are all the same."""
    if items.is_positive.all() or not items.is_positive.any():
        return float("nan")
    return float(roc_auc_score(items.is_positive, items.positive))


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
        title=f"calibration error ({BINS} bins of equal count)",
        better="lower",
        of=lambda items: calibration_error(items.confidence, items.correct.astype(np.float64)),
        applies=tells_probabilities,
    ),
)
