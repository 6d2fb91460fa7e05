"""Scores: label log-probabilities with the label prior divided out and the calibration applied.

The softmax of an order's scores is that order's distribution; only differences of scores mean something.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from attrs import frozen

from openjev_core.calibration import UNCORRECTED, Calibration, Correction
from openjev_core.distribution import floored_logs, softmax
from openjev_core.engine.calibrated import ReadoutName, correction_for, name_of, question_digest
from openjev_core.question import QuestionType, Readout
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
class ScoredReadout:
    """A readout, and its scores.

    Attributes:
        readout: As the type asked it.
        orders: The scores of each order that was read.
    """

    readout: Readout
    orders: Sequence[OrderScores]


@frozen
class Scorer:
    """What a calibration says of readouts and of answers.

    Attributes:
        calibration: What is applied, if anything.
    """

    calibration: Calibration | None = None

    def correction(self, question_type: QuestionType[Any, Any], question: Any, read: ReadReadout) -> Correction:
        """What the calibration does to a readout.

        Raises:
            PluginError: The type's suffix failed.
        """
        if self.calibration is None:
            return UNCORRECTED
        return correction_for(self.calibration, question_type.name, self._name(question_type, question, read))

    def accepts(
        self, question_type: QuestionType[Any, Any], question: Any, read: Sequence[ReadReadout], probability: float
    ) -> bool:
        """Whether an answer is accepted by the calibration's promise. Of a question that it does not know, none is.

        Args:
            question_type: The question's type.
            question: The question.
            read: Its readouts.
            probability: The product, over these, of the most probable option's probability.
        """
        if self.calibration is None or self.calibration.promise is None:
            return False
        known = self.calibration.promise.questions
        found = known.get(question_digest([self._name(question_type, question, one) for one in read]))
        return found is not None and found.threshold is not None and probability >= found.threshold

    def _name(self, question_type: QuestionType[Any, Any], question: Any, read: ReadReadout) -> ReadoutName:
        return name_of(question_type, question, read.readout.planned.readout)


def scores_of(read: ReadReadout, priors: Priors, correction: Correction) -> list[Sequence[float]]:
    """The scores of each order that was read of a readout, in the options' given order.

    The prior is divided out first (Zhao et al. 2021, contextual calibration, with the empty state as the content-free
    input); then the calibration's formula applies.
    """
    scores: list[Sequence[float]] = [one.logprobs for one in read.orders]
    if priors:
        scores = [divide_out(one, priors[key]) for one, key in zip(scores, read.readout.keys, strict=False)]
    return scores if correction is UNCORRECTED else [correction.scores(one) for one in scores]


def divide_out(logprobs: Sequence[float], prior: Sequence[float]) -> list[float]:
    """Log-probabilities less those of the prior, both normalised over the labels first; the prior is floored."""
    normalised = [math.log(p) if p > 0 else -math.inf for p in softmax(logprobs)]
    return [value - base for value, base in zip(normalised, floored_logs(prior), strict=True)]


def order_scores(read: ReadReadout, priors: Priors) -> list[OrderScores]:
    """What a calibration is fitted on: each order's scores without any calibration."""
    scores = scores_of(read, priors, UNCORRECTED)
    return [OrderScores(labels, one) for labels, one in zip(read.readout.labels, scores, strict=False)]
