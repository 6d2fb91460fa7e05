"""Judged questions as arrays, and how good the answers are: one number per measure.

A bootstrap interval takes each measure a thousand times. Where scikit-learn has a measure, its checks of the input take
ten times as long as the formula, so the formula stands here, and a test compares it with scikit-learn's value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_PROBABILITY = 1e-12
"""A smaller probability counts as this one in a log loss, so that one certain mistake does not make it infinite."""


@frozen(kw_only=True)
class Items:
    """Judged questions of one group, each with a label. Every array has one entry per question.

    Attributes:
        rows: The row that each question belongs to; questions of one row are resampled together.
        kinds: The kinds of answers that occur.
        labels, predictions: Outcomes as numbers that stand for their names: the same name, the same number, whatever
            the order of a question's options. -1 is a prediction of none of them.
        correct: Whether the prediction is the label.
        confidence: The probability of the most probable outcome; NaN where the answer gives none.
        log_loss: Minus the logarithm of the label's probability, in nats; NaN likewise.
        brier: The sum of the squared differences from certainty; in [0, 2]; NaN likewise.
        error: The distance from the label on an ordinal scale, in levels; NaN for other kinds.
        positive: Of binary questions: the probability of yes; NaN for other kinds.
        is_positive: Of binary questions: whether the label is yes.
    """

    rows: Integers
    kinds: tuple[str, ...]
    labels: Integers
    predictions: Integers
    correct: NDArray[np.bool_]
    confidence: Floats
    log_loss: Floats
    brier: Floats
    error: Floats
    positive: Floats
    is_positive: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, positions: Any) -> Items:
        """The items at some positions, which may repeat."""
        return Items(
            rows=self.rows[positions],
            kinds=self.kinds,
            labels=self.labels[positions],
            predictions=self.predictions[positions],
            correct=self.correct[positions],
            confidence=self.confidence[positions],
            log_loss=self.log_loss[positions],
            brier=self.brier[positions],
            error=self.error[positions],
            positive=self.positive[positions],
            is_positive=self.is_positive[positions],
        )


def items_of(judged: Sequence[tuple[int, Mapping[str, Any]]]) -> Items:
    """Arrays from ``(row number, judged question)`` pairs that all have labels."""
    numbers: dict[str, int] = {"": -1}

    def number(question: Mapping[str, Any], outcome: int | None) -> int:
        return numbers.setdefault("" if outcome is None else f"={question['names'][outcome]}", len(numbers) - 1)

    def column(of: Callable[[Mapping[str, Any]], float]) -> Floats:
        return np.array([of(question) for _, question in judged], dtype=np.float64)

    return Items(
        rows=np.array([row for row, _ in judged], dtype=np.int64),
        kinds=tuple(sorted({question["kind"] for _, question in judged})),
        labels=np.array([number(question, question["label"]) for _, question in judged], dtype=np.int64),
        predictions=np.array([number(question, question["predicted"]) for _, question in judged], dtype=np.int64),
        correct=np.array([question["predicted"] == question["label"] for _, question in judged], dtype=np.bool_),
        confidence=column(lambda q: max(q["probabilities"]) if q["probabilities"] else np.nan),
        log_loss=column(_log_loss),
        brier=column(_brier),
        error=column(lambda q: q.get("error", np.nan)),
        positive=column(lambda q: q["probabilities"][_yes(q)] if _is_binary(q) else np.nan),
        is_positive=np.array([_is_binary(q) and q["label"] == _yes(q) for _, q in judged], dtype=np.bool_),
    )


def judged_questions(records: Iterable[Mapping[str, Any]]) -> list[tuple[int, str, Mapping[str, Any]]]:
    """``(row number, question id, judged question)`` of every answered question, labelled or not."""
    return [
        (record["row"], question_id, question)
        for record in records
        for question_id, question in record.get("questions", {}).items()
    ]


def _log_loss(question: Mapping[str, Any]) -> float:
    if not question["probabilities"]:
        return float("nan")
    return -float(np.log(max(question["probabilities"][question["label"]], LEAST_PROBABILITY)))


def _brier(question: Mapping[str, Any]) -> float:
    if not question["probabilities"]:
        return float("nan")
    return math.fsum((p - (i == question["label"])) ** 2 for i, p in enumerate(question["probabilities"]))


def _is_binary(question: Mapping[str, Any]) -> bool:
    return question["kind"] == "binary" and bool(question["probabilities"])


def _yes(question: Mapping[str, Any]) -> int:
    return int(question["positive"])


WIDTH_BINS = 15
"""Bins of the usual calibration error: of equal width, as by Guo et al. 2017."""

COUNT_BINS = 10
"""Bins of the adaptive calibration error: of equal count, so that each one's accuracy is as certain as another's.
The error is larger by chance the fewer answers there are, and tells apart confidences that differ little."""

CALIBRATION_ERROR = (
    f"of the probability of the most probable outcome; over {WIDTH_BINS} bins of equal width, and over {COUNT_BINS} "
    "of equal count"
)
"""What the calibration errors are, for reports."""


@frozen(kw_only=True)
class Measure:
    """A measure of a group of judged questions.

    Attributes:
        name: In JSON.
        title: For people.
        of: Its value for some items; NaN where it has none.
        applies: Whether it means anything for some items.
    """

    name: str
    title: str
    of: Callable[[Items], float]
    applies: Callable[[Items], bool]


def calibration_error(confidence: Floats, correct: Floats, bins: int = WIDTH_BINS) -> float:
    """Expected calibration error: the distance between confidence and accuracy, over bins of [0, 1] of equal width."""
    # A bin holds its upper end; 0 belongs to the first.
    of_each = np.maximum(np.ceil(confidence * bins).astype(np.int64) - 1, 0)
    gaps = np.bincount(of_each, weights=correct - confidence, minlength=bins)
    return float(np.abs(gaps).sum() / len(confidence))


def adaptive_calibration_error(confidence: Floats, correct: Floats, bins: int = COUNT_BINS) -> float:
    """Expected calibration error over bins of equal count."""
    order = np.argsort(confidence, kind="stable")
    count, bins = len(order), min(bins, len(order))
    # As even as they can be, the larger ones first.
    starts = np.cumsum([0, *(count // bins + (position < count % bins) for position in range(bins - 1))])
    gaps = np.add.reduceat(correct[order] - confidence[order], starts)
    return float(np.abs(gaps).sum() / count)


def macro_f1(items: Items) -> float:
    """The mean over the labels that occur of each one's F1."""
    kinds = 1 + max(int(items.labels.max()), int(items.predictions.max()))
    occurring = np.bincount(items.labels, minlength=kinds)
    predicted = np.bincount(items.predictions[items.predictions >= 0], minlength=kinds)
    right = np.bincount(items.labels[items.correct], minlength=kinds)
    of_each = 2 * right / np.maximum(occurring + predicted, 1)
    return float(of_each[occurring > 0].mean())


def area_under_roc(items: Items) -> float:
    """The probability that a yes gets a higher P(yes) than a no; NaN when the labels are all the same."""
    yes = int(items.is_positive.sum())
    no = len(items) - yes
    if not (yes and no):
        return float("nan")
    # The Mann-Whitney statistic, ties counted as a half.
    ranks = rankdata(items.positive)[items.is_positive].sum()
    return float((ranks - yes * (yes + 1) / 2) / (yes * no))


def tells_probabilities(items: Items) -> bool:
    """Whether every answer gives a probability to each outcome."""
    return not bool(np.isnan(items.confidence).any())


MEASURES = (
    Measure(
        name="accuracy",
        title="accuracy",
        of=lambda items: float(items.correct.mean()),
        applies=lambda _: True,
    ),
    Measure(
        name="macro_f1",
        title="macro-F1",
        of=macro_f1,
        applies=lambda items: items.kinds in (("nominal",), ("binary",)),
    ),
    Measure(
        name="auroc",
        title="AUROC",
        of=area_under_roc,
        applies=lambda items: items.kinds == ("binary",) and tells_probabilities(items),
    ),
    Measure(
        name="mae",
        title="mean absolute error (levels)",
        of=lambda items: float(items.error.mean()),
        applies=lambda items: items.kinds == ("ordinal",),
    ),
    Measure(
        name="log_loss",
        title="log loss (nats)",
        of=lambda items: float(items.log_loss.mean()),
        applies=tells_probabilities,
    ),
    Measure(
        name="brier",
        title="Brier score (0 to 2)",
        of=lambda items: float(items.brier.mean()),
        applies=tells_probabilities,
    ),
    Measure(
        name="ece",
        title=f"calibration error ({WIDTH_BINS} equal widths)",
        of=lambda items: calibration_error(items.confidence, items.correct.astype(np.float64)),
        applies=tells_probabilities,
    ),
    Measure(
        name="adaptive_ece",
        title=f"calibration error ({COUNT_BINS} equal counts)",
        of=lambda items: adaptive_calibration_error(items.confidence, items.correct.astype(np.float64)),
        applies=tells_probabilities,
    ),
)
