"""How far probabilities and shares of right answers lie apart: bins, calibration errors, and a test of calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from openjev_core.datasets.intervals import share
from openjev_core.datasets.items import Floats, Integers, Items

WIDTH_BINS = 15
"""Bins of the usual calibration error: of equal width, as by Guo et al. 2017."""

COUNT_BINS = 10
"""Bins of the adaptive calibration error: of equal count, so that each one's accuracy is as certain as another's."""

FLIPS = 999
SEED = 0


def bins_of_width(confidence: Floats, bins: int = WIDTH_BINS) -> Integers:
    """The bin of each confidence, over [0, 1] in equal widths. A bin holds its upper end; 0 belongs to the first."""
    return np.maximum(np.ceil(confidence * bins).astype(np.int64) - 1, 0)


def bins_of_count(confidence: Floats, bins: int = COUNT_BINS) -> Integers:
    """The bin of each confidence, in counts as equal as can be. Equal confidences share a bin, in any order of rows."""
    bins = min(bins, len(confidence))
    return np.asarray(np.ceil(rankdata(confidence) * bins / len(confidence)).astype(np.int64) - 1)


def calibration_error(residuals: Floats, bins: Integers) -> float:
    """Expected calibration error: the distance between accuracy and mean confidence, over bins.

    Args:
        residuals: 1 less the confidence where the answer is right, else minus the confidence.
        bins: The bin of each.
    """
    return float(np.abs(np.bincount(bins, weights=residuals)).sum() / len(residuals))


def residuals_of(items: Items) -> Floats:
    """What is left of each answer's correctness when its confidence is taken away."""
    return items.correct - items.confidence


def calibration_test(items: Items) -> dict[str, Any]:
    """A test of calibration, and what part of the calibration error chance alone would make.

    Were the probabilities those of being right, each row's residuals would be as likely with the other sign. So rows
    have their signs drawn anew, many times (the wild bootstrap of Wu 1986, with Rademacher's weights by cluster). The
    error over equal counts comes out that large by chance in a share ``p`` of the draws; its mean over them is
    ``by_chance``. Near calibration the error says little else than this: it is never below 0, and so has no interval.
    """
    residuals, bins = residuals_of(items), bins_of_count(items.confidence)
    _, cluster = np.unique(items.rows, return_inverse=True)
    signs = np.random.default_rng(SEED).choice((-1.0, 1.0), size=(FLIPS, int(cluster.max()) + 1))
    found = calibration_error(residuals, bins)
    drawn = np.array([calibration_error(residuals * sign[cluster], bins) for sign in signs])
    return {"by_chance": float(drawn.mean()), "p": float((1 + (drawn >= found - 1e-12).sum()) / (FLIPS + 1))}


def reliability(items: Items) -> list[dict[str, Any]]:
    """Confidence against accuracy, in bins of equal count.

    Returns:
        For each bin the ``count`` of answers, their mean ``confidence``, and their ``accuracy`` with its interval.
    """
    bins = bins_of_count(items.confidence)
    return [
        {
            "count": int((bins == one).sum()),
            "confidence": float(items.confidence[bins == one].mean()),
            "accuracy": share(items.correct[bins == one], items.rows[bins == one]).json(),
        }
        for one in np.unique(bins)
    ]
