"""From one reading to the scores that are averaged over orders: label prior and calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from attrs import frozen

from openjev_core.backends.protocol import Branch
from openjev_core.calibration import Calibration
from openjev_core.distribution import floored_logs, softmax
from openjev_core.prompts.compiler import Variant

Priors = Mapping[Branch, Sequence[float]]
"""A branch to the label logprobs that it gets after an empty state, in its own label order."""


@frozen
class Scorer:
    """Corrects label logprobs, variant by variant.

    Attributes:
        calibration: To apply, if any.
    """

    calibration: Calibration | None = None

    def scores(self, type_name: str, variant: Variant, logprobs: Sequence[float], priors: Priors) -> Sequence[float]:
        """Scores in the options' given order, whose softmax is this order's distribution.

        The prior is divided out first (Zhao et al. 2021, contextual calibration, with the empty state as the
        content-free input); then the calibration's formula applies.
        """
        prior = priors.get(variant.branch) if priors else None  # a branch's hash goes through all of its tokens
        corrected = logprobs if prior is None else divide_out(logprobs, prior)
        if self.calibration is None or type_name not in self.calibration.types:
            return corrected
        scores = list(corrected)
        correction = self.calibration.types[type_name].for_options(len(scores))
        for (label, _), given in zip(variant.labelled, variant.order, strict=True):
            scores[given] = scores[given] / correction.temperature + correction.bias.get(label, 0.0)
        return scores


def divide_out(logprobs: Sequence[float], prior: Sequence[float]) -> list[float]:
    """Label logprobs less those of the prior, both normalised over the labels first; the prior is floored."""
    normalised = [math.log(p) if p > 0 else -math.inf for p in softmax(logprobs)]
    return [value - base for value, base in zip(normalised, floored_logs(prior), strict=True)]
