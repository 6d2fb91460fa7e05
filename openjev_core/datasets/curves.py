"""What the plots show: reliability, and risk against coverage with suggested thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import asdict, frozen
from scipy import stats

from openjev_core.datasets.measures import COUNT_BINS, Items

CERTAINTY = 0.95
MOST_POINTS = 200
"""Upper bound on the points of a curve in a report."""


@frozen
class ReliabilityBin:
    """One bin of a reliability diagram.

    Attributes:
        count: Answers in it.
        confidence: Their mean confidence.
        accuracy: The share of them that is right.
    """

    count: int
    confidence: float
    accuracy: float


@frozen
class Threshold:
    """The probability of the most probable outcome from which on answers reach a target accuracy.

    Attributes:
        target: The accuracy wanted.
        threshold: The lowest one from which on the kept answers' accuracy is at least the target with
            :data:`CERTAINTY` (one-sided, Clopper-Pearson); ``None`` when there is none.
        coverage: The share of answers that are kept.
        accuracy: Their accuracy in these data.
    """

    target: float
    threshold: float | None
    coverage: float
    accuracy: float | None


def reliability(items: Items, bins: int = COUNT_BINS) -> list[ReliabilityBin]:
    """Confidence against accuracy, in bins of equal count."""
    parts = np.array_split(np.argsort(items.confidence, kind="stable"), min(bins, len(items)))
    return [
        ReliabilityBin(len(part), float(items.confidence[part].mean()), float(items.correct[part].mean()))
        for part in parts
    ]


@frozen
class RiskCoverage:
    """How the error rate falls as less certain answers are set aside.

    Attributes:
        thresholds: Distinct confidences, highest first.
        kept: How many answers have at least that confidence.
        right: How many of those are right.
    """

    thresholds: Sequence[float]
    kept: Sequence[int]
    right: Sequence[int]

    @property
    def area(self) -> float:
        """The area under the curve: the mean error rate over all coverages."""
        total = self.kept[-1]
        previous, area = 0, 0.0
        for kept, right in zip(self.kept, self.right, strict=True):
            area += (kept - previous) / total * (1 - right / kept)
            previous = kept
        return area

    def suggest(self, target: float) -> Threshold:
        """The threshold that keeps most while reaching a target accuracy."""
        kept, right = np.array(self.kept), np.array(self.right)
        # Clopper-Pearson's lower bound; 0 where none is right, for which the distribution below is not defined.
        bounds = np.where(right > 0, stats.beta.ppf(1 - CERTAINTY, np.maximum(right, 1), kept - right + 1), 0.0)
        reaching = np.flatnonzero(bounds >= target)
        if not len(reaching):
            return Threshold(target, None, 0.0, None)
        last = int(reaching[-1])
        return Threshold(target, self.thresholds[last], float(kept[last] / kept[-1]), float(right[last] / kept[last]))

    def json(self) -> dict[str, Any]:
        """As JSON, thinned to at most :data:`MOST_POINTS` points."""
        total = self.kept[-1]
        positions = np.unique(np.linspace(0, len(self.kept) - 1, MOST_POINTS).astype(int))
        points = [
            {
                "threshold": self.thresholds[i],
                "coverage": self.kept[i] / total,
                "risk": 1 - self.right[i] / self.kept[i],
            }
            for i in positions
        ]
        return {"area": self.area, "points": points}


def risk_coverage(items: Items) -> RiskCoverage:
    """The curve of these items. Answers of one confidence are kept or set aside together."""
    values, counts = np.unique(items.confidence, return_counts=True)
    right = np.array([items.correct[items.confidence == value].sum() for value in values])
    return RiskCoverage(
        thresholds=[float(value) for value in values[::-1]],
        kept=[int(count) for count in np.cumsum(counts[::-1])],
        right=[int(count) for count in np.cumsum(right[::-1])],
    )


def as_json(records: Sequence[ReliabilityBin] | Sequence[Threshold]) -> list[dict[str, Any]]:
    """Records as JSON objects."""
    return [asdict(record) for record in records]
