"""Scores: label log-probabilities with the label prior divided out and the calibration applied.

The softmax of an order's scores is that order's distribution; only differences of scores mean something.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from attrs import frozen

from openjev_core.calibration import Calibration
from openjev_core.distribution import floored_logs, softmax
from openjev_core.reader import Logprobs, OrderReading, PreparedReadout


class ReadReadout(NamedTuple):
    """A readout, and what was read of it.

    Attributes:
        readout: As it was prepared.
        orders: Each of its orders.
    """

    readout: PreparedReadout
    orders: Sequence[OrderReading]


Readings = Mapping[str, Sequence[ReadReadout]]
"""Question id to its readouts with what was read of them, in the order in which they were asked."""

Priors = Mapping[bytes, Logprobs]
"""Log-probabilities read about an empty state, by the keys of :class:`PreparedReadout`."""


@frozen
class OrderScores:
    """The scores of one order of a readout's options.

    Attributes:
        labels: The label that each option stood under, in the options' given order.
        scores: Each option's score in nats, in the options' given order. ``-inf`` is allowed.
    """

    labels: Sequence[str]
    scores: Sequence[float]


@frozen
class Scorer:
    """Turns log-probabilities into scores.

    Attributes:
        calibration: What is applied, if anything.
    """

    calibration: Calibration | None = None

    def scores(self, type_name: str, read: ReadReadout, priors: Priors) -> list[Sequence[float]]:
        """The scores of each order that was read of a readout, in the options' given order.

        The prior is divided out first (Zhao et al. 2021, contextual calibration, with the empty state as the
        content-free input); then the calibration's formula applies.
        """
        readout = read.readout
        scores: list[Sequence[float]] = [one.logprobs for one in read.orders]
        if priors:
            scores = [divide_out(one, priors[key]) for one, key in zip(scores, readout.keys, strict=False)]
        if self.calibration is not None and type_name in self.calibration.types:
            correction = self.calibration.types[type_name].for_options(len(scores[0]))
            scores = [
                [
                    score / correction.temperature + correction.bias.get(label, 0.0)
                    for score, label in zip(one, labels, strict=True)
                ]
                for one, labels in zip(scores, readout.labels, strict=False)
            ]
        return scores


def divide_out(logprobs: Sequence[float], prior: Sequence[float]) -> list[float]:
    """Log-probabilities less those of the prior, both normalised over the labels first; the prior is floored."""
    normalised = [math.log(p) if p > 0 else -math.inf for p in softmax(logprobs)]
    return [value - base for value, base in zip(normalised, floored_logs(prior), strict=True)]


def order_scores(read: ReadReadout, priors: Priors) -> list[OrderScores]:
    """What a calibration is fitted on: each order's scores without any calibration."""
    scores = Scorer().scores("", read, priors)
    return [OrderScores(labels, one) for labels, one in zip(read.readout.labels, scores, strict=False)]
