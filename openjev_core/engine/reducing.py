"""From readings to answers: distributions first, then each question type's own reducer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from openjev_core.backends.protocol import Reading
from openjev_core.distribution import ConfidenceFormula, average_orders, confidence, spread
from openjev_core.errors import PluginError
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.prompts.compiler import Compiled, CompiledQuestion
from openjev_core.question import Distribution


@frozen
class Reducer:
    """Turns readings into answers.

    Attributes:
        converter: Writes answers as JSON.
        temperature: Divides the label logprobs.
        formula: The confidence formula.
    """

    converter: QuestionConverter
    temperature: float
    formula: ConfidenceFormula

    def answers(
        self, compiled: Compiled, readings: Mapping[str, Sequence[Reading]], *, partial: bool
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
                answers[question.id] = self.answer(question, readings[question.id])
            except PluginError as error:
                if not partial:
                    raise
                failures[question.id] = error
        return answers, failures

    def answer(self, question: CompiledQuestion, readings: Sequence[Reading]) -> dict[str, Any]:
        """One question's answer as JSON, ``type`` first."""
        distributions = list(self.distributions(question, readings))
        try:
            answer = question.type.reduce(question.question, distributions)
        except Exception as error:
            raise PluginError(question.type.name, f"reduce raised {type(error).__name__}") from error
        body = self.converter.answer(question.type, answer)
        if any(len(compiled.variants) > 1 for compiled in question.readouts):
            body["x_order_spread"] = max(distribution.spread for distribution in distributions)
        return body

    def distributions(self, question: CompiledQuestion, readings: Sequence[Reading]) -> Iterator[Distribution]:
        """One distribution per readout, its orders averaged."""
        position = 0
        for compiled in question.readouts:
            count = len(compiled.variants)
            orders = [reading.logprobs for reading in readings[position : position + count]]
            position += count
            probabilities = average_orders(orders, self.temperature)
            yield Distribution(
                compiled.readout,
                probabilities,
                confidence(probabilities, formula=self.formula, ordered=compiled.readout.ordered),
                spread(orders, self.temperature) if count > 1 else 0.0,
            )
