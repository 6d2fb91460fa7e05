"""How the error rate falls as less certain answers are set aside."""

from __future__ import annotations

from typing import Any

import numpy as np

from openjev_core.datasets.items import Items

MOST_POINTS = 200
"""Upper bound on the points of a curve in a report."""


def risk_coverage(items: Items) -> dict[str, Any]:
    """The curve of these items: its ``points``, and the ``area`` under it, the mean error rate over all coverages.

    Answers of one confidence are kept or set aside together.
    """
    thresholds, counts = np.unique(items.confidence, return_counts=True)
    right = np.array([items.correct[items.confidence == one].sum() for one in thresholds])
    kept = np.cumsum(counts[::-1])
    risk = 1 - np.cumsum(right[::-1]) / kept
    shown = np.unique(np.linspace(0, len(kept) - 1, MOST_POINTS).astype(int))
    return {
        "area": float((counts[::-1] * risk).sum() / kept[-1]),
        "points": [
            {
                "threshold": float(thresholds[::-1][i]),
                "coverage": float(kept[i] / kept[-1]),
                "risk": float(risk[i]),
            }
            for i in shown
        ],
    }
