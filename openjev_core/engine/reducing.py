"""From readings to answers: distributions first, then each question type's own reducer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from openjev_core.distribution import ConfidenceFormula, average_orders, confidence, spread
from openjev_core.engine.adaptive import settled
from openjev_core.engine.reading import ReadoutReadings
from openjev_core.engine.scoring import Priors, Scorer
from openjev_core.errors import PluginError
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.prompts.compiler import Compiled, CompiledQuestion, CompiledReadout
from openjev_core.question import Distribution


@frozen
class Reducer:
    """Turns readings into answers.

    Attributes:
        converter: Writes answers as JSON.
        scorer: Corrects label logprobs.
        temperature: Divides the scores.
        formula: The confidence formula.
    """

    converter: QuestionConverter
    scorer: Scorer
    temperature: float
    formula: ConfidenceFormula

    def answers(
        self,
        compiled: Compiled,
        readings: Mapping[str, Sequence[ReadoutReadings]],
        priors: Priors,
        *,
        partial: bool,
    ) -> tuple[dict[str, dict[str, Any]], dict[str, PluginError]]:
        """Every question's answer as JSON, and the failures when ``partial`` allows them.

        Raises:
            BackendError: A reading is no distribution.
            PluginError: A reducer broke its contract, and ``partial`` is false.
        """
        answers: dict[str, dict[str, Any]] = {}
        failures: dict[str, PluginError] = {}
        for question in compiled.questions:
            try:
                answers[question.id] = self.answer(question, readings[question.id], priors)
            except PluginError as error:
                if not partial:
                    raise
                failures[question.id] = error
        return answers, failures

    def answer(self, question: CompiledQuestion, readings: Sequence[ReadoutReadings], priors: Priors) -> dict[str, Any]:
        """One question's answer as JSON, ``type`` first."""
        distributions = list(self.distributions(question, readings, priors))
        try:
            answer = question.type.reduce(question.question, distributions)
        except BaseException as error:
            # Also a SystemExit: passed on, it would end the server.
            raise PluginError(question.type.name, f"reduce raised {type(error).__name__}") from error
        body = self.converter.answer(question.type, answer)
        if max(map(len, readings)) > 1:
            body["x_order_spread"] = max(distribution.spread for distribution in distributions)
        return body

    def distributions(
        self, question: CompiledQuestion, readings: Sequence[ReadoutReadings], priors: Priors
    ) -> Iterator[Distribution]:
        """One distribution per readout, its orders averaged."""
        for compiled, of_readout in zip(question.readouts, readings, strict=True):
            orders = self._orders(question, compiled, of_readout, priors)
            probabilities = average_orders(orders, self.temperature)
            yield Distribution(
                compiled.readout,
                probabilities,
                confidence(probabilities, formula=self.formula, ordered=compiled.readout.ordered),
                spread(orders, self.temperature) if len(orders) > 1 else 0.0,
            )

    def is_settled(
        self, question: CompiledQuestion, compiled: CompiledReadout, readings: ReadoutReadings, priors: Priors
    ) -> bool:
        """Whether reading more orders of a readout could still change its answer noticeably."""
        orders = self._orders(question, compiled, readings, priors)
        return settled(orders, len(compiled.variants), self.temperature)

    def _orders(
        self, question: CompiledQuestion, compiled: CompiledReadout, readings: ReadoutReadings, priors: Priors
    ) -> list[Sequence[float]]:
        if not priors and self.scorer.calibration is None:
            return [reading.logprobs for reading in readings]  # there is nothing to correct
        # An adaptive evaluation reads the first of the variants only.
        return [
            self.scorer.scores(question.type.name, variant, reading.logprobs, priors)
            for variant, reading in zip(compiled.variants, readings, strict=False)
        ]
