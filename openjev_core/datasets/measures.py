"""How good the answers are: one number per measure, with its interval.

Where scikit-learn has a measure, it gives the value; the influences, from which intervals and differences come, it does
not give.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen
from scipy.stats import rankdata
from sklearn.metrics import f1_score, roc_auc_score

from openjev_core.datasets import intervals
from openjev_core.datasets.intervals import Estimate
from openjev_core.datasets.items import NO_OUTCOME, Floats, Items, tells_probabilities
from openjev_core.datasets.reliability import (
    COUNT_BINS,
    WIDTH_BINS,
    bins_of_count,
    bins_of_width,
    calibration_error,
    residuals_of,
)

CALIBRATION_ERROR = (
    f"of the probability of the most probable outcome; over {WIDTH_BINS} bins of equal width, and over {COUNT_BINS} "
    "of equal count in which equal probabilities stay together. It has no interval: it is never below 0, so near "
    "calibration its estimate is mostly chance. Beside it stand what chance alone would make, and a test"
)
"""What the calibration errors are, for reports."""


@frozen(kw_only=True)
class Measure:
    """A measure of a group of judged questions.

    Attributes:
        name: In JSON.
        title: For people.
        of: Its value for some items; ``None`` where it has none.
        applies: Whether it means anything for some items.
        interval: The value with its interval, where it has one.
        influence: How far each question moves the value, times the number of questions; ``None`` where no interval
            rests on it.
        decides: It looks at which outcome is predicted, and not at probabilities.
        fewest: Rows below which a difference of it has no interval that holds.
    """

    name: str
    title: str
    of: Callable[[Items], float | None]
    applies: Callable[[Items], bool]
    interval: Callable[[Items, float], Estimate]
    influence: Callable[[Items], Floats] | None = None
    decides: bool = False
    fewest: int = intervals.FEWEST_CROWDED_ROWS

    def estimate(self, items: Items) -> Estimate:
        """The value for some items, with its interval or the reason why there is none."""
        value = self.of(items)
        return Estimate(None, reason="not defined for these labels") if value is None else self.interval(items, value)

    def difference(self, before: Items, after: Items) -> Estimate:
        """The value after less the value before, of the same questions in the same order."""
        old, new = self.of(before), self.of(after)
        if old is None or new is None:
            return Estimate(None, reason="not defined for these labels")
        if self.influence is None:
            return Estimate(new - old, reason=NO_INTERVAL)
        moved = self.influence(after) - self.influence(before)
        differ = before.correct != after.correct if self.decides else moved != 0
        differing = len(np.unique(before.rows[differ]))
        return intervals.difference(new - old, moved, before.rows, differing, self.fewest)


NO_INTERVAL = "a calibration error has no interval that holds"


def macro_f1(items: Items) -> float:
    """The mean F1 of the outcomes that occur as label or as prediction; one that is never right counts as 0."""
    return float(f1_score(items.labels, items.predictions, labels=_outcomes(items), average="macro", zero_division=0))


def f1_influence(items: Items) -> Floats:
    """By the delta method: of each outcome's F1 = 2 TP / (labelled + predicted), then their mean."""
    found = []
    for outcome in _outcomes(items):
        labelled, predicted = items.labels == outcome, items.predictions == outcome
        both, either = labelled & predicted, labelled.astype(float) + predicted
        found.append((2 * both - 2 * both.sum() / either.sum() * either) / either.mean())
    return np.asarray(np.mean(found, axis=0))


def area_under_roc(items: Items) -> float | None:
    """The probability that a yes gets a higher P(yes) than a no; ``None`` when the labels are all the same."""
    if items.is_positive.all() or not items.is_positive.any():
        return None
    return float(roc_auc_score(items.is_positive, items.positive))


def roc_influence(items: Items) -> Floats:
    """By DeLong and others 1988: of a yes, the share of noes below it, and of a no, the share of yeses above it."""
    yes, scores = items.is_positive, items.positive
    among_own = np.empty(len(items))
    among_own[yes], among_own[~yes] = rankdata(scores[yes]), rankdata(scores[~yes])
    below = rankdata(scores) - among_own
    shares = np.where(yes, below / (~yes).sum(), 1 - below / yes.sum())
    return np.asarray((shares - shares[yes].mean()) / np.where(yes, yes.mean(), (~yes).mean()))


def _outcomes(items: Items) -> list[int]:
    found: set[int] = {*items.labels.tolist(), *items.predictions.tolist()}
    return sorted(found - {NO_OUTCOME})


def _rarest(items: Items) -> tuple[str, int]:
    """The outcome that is the label in the fewest rows, and how many."""
    counts = {items.names[one]: len(np.unique(items.rows[items.labels == one])) for one in _outcomes(items)}
    return min(counts.items(), key=lambda entry: entry[1])


def _mean_of(name: str, title: str, applies: Callable[[Items], bool]) -> Measure:
    """The mean of a column of items."""

    def column(items: Items) -> Floats:
        return np.asarray(getattr(items, name))

    return Measure(
        name={"error": "mae", "ranked": "rps"}.get(name, name),
        title=title,
        of=lambda items: float(column(items).mean()),
        applies=applies,
        interval=lambda items, _: intervals.mean(column(items), items.rows),
        influence=lambda items: column(items) - column(items).mean(),
        fewest=intervals.FEWEST_SKEWED_ROWS,
    )


def _calibration_error(name: str, title: str, bins: Callable[[Floats], intervals.Integers]) -> Measure:
    return Measure(
        name=name,
        title=title,
        of=lambda items: calibration_error(residuals_of(items), bins(items.confidence)),
        applies=tells_probabilities,
        interval=lambda _, value: Estimate(value, reason=NO_INTERVAL),
    )


MEASURES = (
    Measure(
        name="accuracy",
        title="accuracy",
        of=lambda items: float(items.correct.mean()),
        applies=lambda _: True,
        interval=lambda items, _: intervals.share(items.correct, items.rows),
        influence=lambda items: items.correct - items.correct.mean(),
        decides=True,
    ),
    Measure(
        name="macro_f1",
        title="macro-F1 (of outcomes labelled or answered)",
        of=macro_f1,
        applies=lambda items: items.kinds in (("nominal",), ("binary",)),
        interval=lambda items, value: intervals.f1(value, f1_influence(items), items.rows, _rarest(items)),
        influence=f1_influence,
        decides=True,
    ),
    Measure(
        name="auroc",
        title="AUROC",
        of=area_under_roc,
        applies=lambda items: items.kinds == ("binary",) and tells_probabilities(items),
        interval=lambda items, value: intervals.auroc(value, roc_influence(items), items.rows, items.is_positive),
        influence=roc_influence,
    ),
    _mean_of("error", "mean absolute error (levels)", lambda items: items.kinds == ("ordinal",)),
    _mean_of(
        "ranked",
        "ranked probability score (0 to 1)",
        lambda items: items.kinds == ("ordinal",) and tells_probabilities(items),
    ),
    _mean_of("log_loss", "log loss (nats)", tells_probabilities),
    _mean_of("brier", "Brier score (0 to 2)", tells_probabilities),
    _calibration_error("ece", f"calibration error ({WIDTH_BINS} equal widths)", bins_of_width),
    _calibration_error("adaptive_ece", f"calibration error ({COUNT_BINS} equal counts)", bins_of_count),
)
