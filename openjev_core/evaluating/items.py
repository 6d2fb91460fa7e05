"""Judged questions as arrays, ready to be measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_PROBABILITY = 1e-12
"""A smaller probability counts as this one in a log loss, so that one certain mistake does not make it infinite."""


@frozen(kw_only=True)
class Items:
    """Judged questions of one group, each with a label. Every array has one entry per question.

    Attributes:
        rows: The row that each belongs to; those of one row are resampled together.
        kinds: The kind of answer.
        labels, predictions: Outcomes as numbers that stand for their names: the same name, the same number, whatever
            the order of a question's options. -1 is a prediction of none of them.
        correct: Whether the prediction is the label.
        confidence: The probability of the most probable outcome; NaN where the answer tells none.
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
        """Some of them, by position, repetitions included."""
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
