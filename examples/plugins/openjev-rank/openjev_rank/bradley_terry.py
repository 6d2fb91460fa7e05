"""Bradley-Terry strengths from probable wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import choix
import numpy as np

PRIOR = 0.01
"""Wins added to every pair in both directions. A comparison that the model is certain of would otherwise put an item
infinitely far above another."""


def strengths(names: Sequence[str], wins: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Maximum-likelihood Bradley-Terry strengths (Maystre and Grossglauser 2015, iterative spectral ranking).

    Args:
        names: The items.
        wins: ``(winner, loser)`` to how often, fractions allowed, for every ordered pair.

    Returns:
        Name to strength; they are positive and sum to 1.
    """
    matrix = np.array([[0.0 if a == b else wins[a, b] + PRIOR for b in names] for a in names])
    logs = choix.ilsr_pairwise_dense(matrix)
    weights = np.exp(logs - logs.max())
    return {name: float(share) for name, share in zip(names, weights / weights.sum(), strict=True)}
