"""Judged questions as arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, fields, frozen
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_PROBABILITY = 1e-12
"""A smaller probability counts as this one in a log loss, so that one certain mistake does not make it infinite."""

NO_OUTCOME = -1
"""Stands for a prediction of none of the outcomes."""


@frozen(kw_only=True)
class Items:
    """Judged questions of one group, each with a label. Every array has one entry per question.

    Attributes:
        rows: The row that each question belongs to.
        names: The outcomes, by the numbers that stand for them below.
        kinds: The kinds of answers that occur.
        labels, predictions: Outcomes as numbers: the same name, the same number, whatever the order of a question's
            options. :data:`NO_OUTCOME` is a prediction of none of them.
        correct: Whether the prediction is the label.
        confidence: The probability of the most probable outcome; NaN where the answer gives none.
        log_loss: Minus the logarithm of the label's probability, in nats; NaN likewise.
        brier: The sum of the squared differences from certainty; in [0, 2]; NaN likewise.
        ranked: The ranked probability score of ordinal questions, over the number of steps; in [0, 1]; NaN for others.
        error: The distance from the label on an ordinal scale, in levels; NaN for other kinds.
        positive: Of binary questions: the probability of yes; NaN for other kinds.
        is_positive: Of binary questions: whether the label is yes.
    """

    rows: Integers
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    labels: Integers
    predictions: Integers
    correct: NDArray[np.bool_]
    confidence: Floats
    log_loss: Floats
    brier: Floats
    ranked: Floats
    error: Floats
    positive: Floats
    is_positive: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, positions: Any) -> Items:
        """The items at some positions."""
        arrays = [field.name for field in fields(Items) if field.name not in ("names", "kinds")]
        return evolve(self, **{name: getattr(self, name)[positions] for name in arrays})


def items_of(judged: Sequence[tuple[int, Mapping[str, Any]]]) -> Items:
    """Arrays from ``(row number, judged question)`` pairs that all have labels."""
    numbers: dict[str, int] = {}

    def number(question: Mapping[str, Any], outcome: int | None) -> int:
        return NO_OUTCOME if outcome is None else numbers.setdefault(question["names"][outcome], len(numbers))

    def column(of: Callable[[Mapping[str, Any]], float]) -> Floats:
        return np.array([of(question) for _, question in judged], dtype=np.float64)

    labels = np.array([number(question, question["label"]) for _, question in judged], dtype=np.int64)
    predictions = np.array([number(question, question["predicted"]) for _, question in judged], dtype=np.int64)
    return Items(
        rows=np.array([row for row, _ in judged], dtype=np.int64),
        names=tuple(numbers),
        kinds=tuple(sorted({question["kind"] for _, question in judged})),
        labels=labels,
        predictions=predictions,
        correct=np.array([question["predicted"] == question["label"] for _, question in judged], dtype=np.bool_),
        confidence=column(lambda q: max(q["probabilities"]) if q["probabilities"] else np.nan),
        log_loss=column(_log_loss),
        brier=column(_brier),
        ranked=column(_ranked),
        error=column(lambda q: q.get("error", np.nan)),
        positive=column(lambda q: q["probabilities"][q["positive"]] if _is_binary(q) else np.nan),
        is_positive=np.array([_is_binary(q) and q["label"] == q["positive"] for _, q in judged], dtype=np.bool_),
    )


def judged_questions(records: Iterable[Mapping[str, Any]]) -> list[tuple[int, str, Mapping[str, Any]]]:
    """``(row number, question id, judged question)`` of every answered question, labelled or not."""
    return [
        (record["row"], question_id, question)
        for record in records
        for question_id, question in record.get("questions", {}).items()
    ]


def tells_probabilities(items: Items) -> bool:
    """Whether every answer gives a probability to each outcome."""
    return not bool(np.isnan(items.confidence).any())


def _log_loss(question: Mapping[str, Any]) -> float:
    if not question["probabilities"]:
        return float("nan")
    return -math.log(max(question["probabilities"][question["label"]], LEAST_PROBABILITY))


def _brier(question: Mapping[str, Any]) -> float:
    if not question["probabilities"]:
        return float("nan")
    return math.fsum((p - (i == question["label"])) ** 2 for i, p in enumerate(question["probabilities"]))


def _ranked(question: Mapping[str, Any]) -> float:
    """The sum over steps of the squared difference of the cumulative distributions (Epstein 1969), over the steps."""
    probabilities = question["probabilities"]
    if not probabilities or question["kind"] != "ordinal":
        return float("nan")
    reached = np.cumsum(probabilities)[:-1]
    return float(((reached - (np.arange(len(reached)) >= question["label"])) ** 2).mean())


def _is_binary(question: Mapping[str, Any]) -> bool:
    return question["kind"] == "binary" and bool(question["probabilities"])
