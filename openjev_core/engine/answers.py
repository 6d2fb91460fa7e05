"""From what was read to answers: a distribution for each readout, then each question type's own reducer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from attrs import frozen

from openjev_core.distribution import ConfidenceFormula, average_orders, confidence, mean_mass, spread
from openjev_core.engine.plan import Prepared
from openjev_core.engine.request import Request
from openjev_core.engine.scores import Priors, Readings, Scorer
from openjev_core.errors import PluginError
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.question import Distribution, QuestionType
from openjev_core.reader import OrderReading, PreparedQuestion

CERTAIN = (1.0,)
"""The probabilities of an option that stands alone, which nothing is read for."""


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
        self, request: Request, prepared: Prepared, readings: Readings, priors: Priors
    ) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        """Every question's answer as JSON, in request order, and the rules that failing types broke.

        Raises:
            PluginError: A type broke its contract, and the request does not allow failures.
        """
        answers: dict[str, dict[str, Any]] = {}
        failures = dict(prepared.failures)
        for name, question in request.questions.items():
            if name not in failures:
                try:
                    answers[name] = self.answer(
                        question.type, question.value, prepared.questions[name], readings[name], priors
                    )
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
        self,
        question_type: QuestionType[Any, Any],
        question: Any,
        prepared: PreparedQuestion,
        readings: Sequence[list[OrderReading]],
        priors: Priors,
    ) -> dict[str, Any]:
        """A question's answer as JSON, ``type`` first.

        Raises:
            PluginError: The reducer broke its contract.
        """
        name = question_type.name
        distributions = list(self._distributions(name, prepared, readings, priors))
        try:
            answer = question_type.reduce(question, distributions)
        except BaseException as error:
            # Also a SystemExit: passed on, it would end the server.
            raise PluginError(name, f"reduce raised {type(error).__name__}") from error
        body = self.converter.answer(question_type, answer)
        if max(map(len, readings)) > 1:
            body["x_order_spread"] = max(distribution.spread for distribution in distributions)
        mass = mean_mass(one.label_mass for read in readings for one in read)
        if mass is not None:
            body["x_label_mass"] = mass
        return body

    def _distributions(
        self, type_name: str, prepared: PreparedQuestion, readings: Sequence[list[OrderReading]], priors: Priors
    ) -> Iterator[Distribution]:
        """One distribution per readout, its orders averaged."""
        for readout, read in zip(prepared.readouts, readings, strict=True):
            if not read:
                yield Distribution(readout.planned.readout, CERTAIN, 1.0)
                continue
            scores = self.scorer.scores(type_name, readout, read, priors)
            probabilities = average_orders(scores, self.temperature)
            yield Distribution(
                readout.planned.readout,
                probabilities,
                confidence(probabilities, formula=self.formula, ordered=readout.planned.readout.ordered),
                spread(scores, self.temperature) if len(scores) > 1 else 0.0,
                mean_mass(one.label_mass for one in read),
            )
