"""From which probability on answers are accepted, so that a promise of their share of right ones holds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from openjev_core.calibration import Acceptance, Calibration, Promise
from openjev_core.datasets.calibrations import LabelledQuestion
from openjev_core.datasets.guarantees import promised
from openjev_core.datasets.shapes import answer_of
from openjev_core.datasets.targets import TargetShape
from openjev_core.distribution import ConfidenceFormula, average_orders, confidence
from openjev_core.engine.calibrated import correction_for, question_digest
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.question import Distribution


def acceptance(  # noqa: PLR0917 - what an answer depends on, and what is promised of it
    questions: Sequence[LabelledQuestion],
    calibration: Calibration,
    converter: QuestionConverter,
    formula: ConfidenceFormula,
    share: float,
    sure: float,
) -> Promise:
    """The threshold of each question.

    Args:
        questions: Of rows that the calibration was not fitted on.
        calibration: What is applied before an answer is made.
        converter: Makes answers of the types' own.
        formula: The confidence formula, which a type may look at.
        share: The share of accepted answers to promise right, for rows like these.
        sure: How sure the promise has to be, for each question.

    Questions whose outcomes cannot be listed get no threshold: the file does not say what was read beside the label.

    Raises:
        PluginError: A reducer broke its contract.
    """
    found: dict[str, list[tuple[int, float, bool]]] = {}
    named: dict[str, tuple[str, str]] = {}
    for question in questions:
        if isinstance(question.checked.shape, TargetShape):
            continue
        distributions = distributions_of(question, calibration, formula)
        question_type, structured = converter.question(question.checked.wire)
        answer = answer_of(question_type, structured, distributions, converter)
        probability = math.prod([max(distribution.probabilities) for distribution in distributions])
        label = question.checked.label
        wrong = question.checked.shape.predicted(answer, label) != label
        digest, shape = question_digest(question.names), question.checked.shape
        found.setdefault(digest, []).append((question.row, probability, wrong))
        named[digest] = shape.type, question.words[0][0]
    return Promise(
        share=share,
        confidence=sure,
        questions={digest: _acceptance(named[digest], answers, share, sure) for digest, answers in found.items()},
    )


def distributions_of(
    question: LabelledQuestion, calibration: Calibration, formula: ConfidenceFormula
) -> list[Distribution]:
    """What a question's type gets to answer it, by the formulas that answers are made with."""
    shape, distributions = question.checked.shape, []
    for name, readout, orders in zip(question.names, shape.readouts, question.orders, strict=True):
        if not orders:
            distributions.append(Distribution(readout, (1.0,), 1.0))
            continue
        correction = correction_for(calibration, shape.type, name)
        probabilities = average_orders([correction.scores(order) for order in orders])
        sure = confidence(probabilities, formula=formula, ordered=readout.ordered)
        distributions.append(Distribution(readout, probabilities, sure))
    return distributions


def _acceptance(
    name: tuple[str, str], answers: Sequence[tuple[int, float, bool]], share: float, sure: float
) -> Acceptance:
    rows, probability, wrong = (np.array(column) for column in zip(*answers, strict=True))
    found = promised(probability, wrong, rows, share, sure)
    return Acceptance(
        type=name[0],
        text=name[1],
        threshold=found.threshold,
        words=found.words,
        rows=found.answers,
        kept=found.kept,
        wrong=found.wrong,
        more=found.more,
    )
