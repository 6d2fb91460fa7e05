"""From readings to answers: a distribution for each readout, then each question type's own reducer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from openjev_core.asking import Asking
from openjev_core.calibration import Applied, Correction
from openjev_core.distribution import ConfidenceFormula, average_orders, confidence, mean_mass, softmax, spread
from openjev_core.engine.request import Request
from openjev_core.engine.scores import Priors, Readings, ReadReadout, Scorer, scores_of
from openjev_core.errors import PluginError
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.question import Distribution, QuestionType

CERTAIN = (1.0,)
"""The probabilities of an option that stands alone, which nothing is read for."""


LEAST_FIRST: tuple[Applied, ...] = ("none", "type", "question")


@frozen
class Reducer:
    """Turns readings into answers.

    Attributes:
        converter: Writes answers as JSON.
        scorer: Corrects log-probabilities.
        temperature: Divides the scores.
        formula: The confidence formula.
    """

    converter: QuestionConverter
    scorer: Scorer
    temperature: float
    formula: ConfidenceFormula

    def answers(
        self, request: Request, readings: Readings, priors: Priors, failed: Mapping[str, PluginError]
    ) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        """Every question's answer as JSON, in request order, and the rules that failing types broke.

        Args:
            request: What was asked.
            readings: What was read.
            priors: What is divided out.
            failed: Question id to the error of its type, where it failed before.

        Raises:
            PluginError: A type broke its contract, and the request does not allow failures.
        """
        answers: dict[str, dict[str, Any]] = {}
        failures = dict(failed)
        for name, question in request.questions.items():
            if name not in failures:
                try:
                    answers[name] = self.answer(question.type, question.value, readings[name], priors)
                    if request.detail:
                        answers[name]["x_detail"] = [
                            self._detail(one, priors, self.scorer.correction(question.type, question.value, one))
                            for one in readings[name]
                        ]
                    continue
                except PluginError as error:
                    if not request.partial:
                        raise
                    failures[name] = error
            failure = failures[name]
            told = {"error_type": failure.error_type, "message": str(failure)}
            answers[name] = {"type": failure.type_name, "x_error": told}
        return answers, {name: failure.rule for name, failure in failures.items()}

    def answer(
        self, question_type: QuestionType[Any, Any], question: Any, read: Sequence[ReadReadout], priors: Priors
    ) -> dict[str, Any]:
        """A question's answer as JSON, ``type`` first.

        Raises:
            PluginError: The reducer broke its contract.
        """
        name = question_type.name
        corrections = [self.scorer.correction(question_type, question, one) for one in read]
        distributions = [
            self._distribution(one, priors, correction) for one, correction in zip(read, corrections, strict=True)
        ]
        try:
            answer = question_type.reduce(question, distributions)
        except BaseException as error:
            # Also a SystemExit: passed on, it would end the server.
            raise PluginError(name, f"reduce raised {type(error).__name__}") from error
        body = self.converter.answer(question_type, answer)
        if max([len(one.orders) for one in read]) > 1:
            body["x_order_spread"] = max([distribution.spread for distribution in distributions])
        mass = mean_mass([order.label_mass for one in read for order in one.orders])
        if mass is not None:
            body["x_label_mass"] = mass
        if self.scorer.calibration is not None:
            body["x_calibration"] = least_specific(
                [correction for one, correction in zip(read, corrections, strict=True) if one.orders]
            )
            if self.scorer.calibration.promise is not None:
                sure = math.prod([max(distribution.probabilities) for distribution in distributions])
                body["x_accept"] = self.scorer.accepts(question_type, question, read, sure)
        return body

    def waiting(
        self, asking: Mapping[str, Asking], readings: Readings, priors: Priors
    ) -> dict[str, list[Distribution]]:
        """The distributions that types wait for before they ask on, by question id: those of their last readouts."""
        return {
            name: [
                self._distribution(read, priors, self.scorer.correction(one.type, one.question, read))
                for read in readings[name][-one.waits :]
            ]
            for name, one in asking.items()
        }

    def _detail(self, read: ReadReadout, priors: Priors, correction: Correction) -> dict[str, Any]:
        """What was read of a readout in each order: where the options stood, under which labels, and what each got."""
        planned, labels = read.readout.planned, read.readout.labels
        scores = scores_of(read, priors, correction)
        return {
            "options": [option.text for option in planned.readout.options],
            "probabilities": list(self._distribution(read, priors, correction).probabilities),
            "orders": [
                {
                    "order": list(order),
                    "labels": list(under),
                    "probabilities": list(softmax(one, self.temperature)),
                    **({} if found.label_mass is None else {"label_mass": found.label_mass}),
                }
                for order, under, one, found in zip(planned.orders, labels, scores, read.orders, strict=True)
            ],
        }

    def _distribution(self, read: ReadReadout, priors: Priors, correction: Correction) -> Distribution:
        """A readout's distribution, its orders averaged."""
        readout = read.readout.planned.readout
        if not read.orders:
            return Distribution(readout, CERTAIN, 1.0)
        scores = scores_of(read, priors, correction)
        probabilities = average_orders(scores, self.temperature)
        return Distribution(
            readout,
            probabilities,
            confidence(probabilities, formula=self.formula, ordered=readout.ordered),
            spread(scores, self.temperature) if len(scores) > 1 else 0.0,
            mean_mass([order.label_mass for order in read.orders]),
            tuple([order.logprobs for order in read.orders]),
        )


def least_specific(corrections: Sequence[Correction]) -> Applied:
    """The part of a calibration that all of a question's readouts got, or one that says more."""
    found = {correction.part for correction in corrections}
    for part in LEAST_FIRST:
        if part in found:
            return part
    return "none"
