"""Whether the answers are better than always giving the commonest label, in numbers and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from openjev_core.datasets import intervals
from openjev_core.datasets.intervals import Estimate

Judged = tuple[int, str, Mapping[str, Any]]
"""Row number, question id, judged question."""

MOST_NAMED = 3
"""Commonest labels that a sentence names."""


def verdict(name: str, members: Sequence[Judged]) -> dict[str, Any]:
    """The verdict on some labelled questions.

    The commonest label is that of each question id, as these rows have it: a classifier that looks at no state could
    do no better. Where an id's options differ from row to row, no label is common, and guessing among them stands in.

    Returns:
        ``name``, ``better`` (``yes``, ``no``, ``worse`` or ``unclear``), ``words``, and the numbers behind them:
        ``accuracy``, ``baseline`` with its ``labels`` and ``accuracy``, and the ``difference``.
    """
    rows = np.array([row for row, _, _ in members])
    right = np.array([question["predicted"] == question["label"] for _, _, question in members])
    common = commonest(members)
    baseline = np.array([_right_by_default(common[question_id], question) for _, question_id, question in members])
    gained = right - baseline
    differing = len(np.unique(rows[gained != 0]))
    difference = intervals.difference(float(gained.mean()), gained - gained.mean(), rows, differing)
    count = len(np.unique(rows))
    same = not gained.any() and count >= intervals.FEWEST_CROWDED_ROWS
    better = "no" if same else _better(difference)
    numbers = f"accuracy {right.mean():.1%} against {baseline.mean():.1%} on {count} rows"
    return {
        "name": name,
        "better": better,
        "words": _words(better, difference, _named(common), numbers),
        "accuracy": intervals.share(right, rows).json(),
        "baseline": {"labels": common, "accuracy": float(baseline.mean())},
        "difference": difference.json(),
    }


def commonest(members: Sequence[Judged]) -> dict[str, str | None]:
    """Question id to its commonest label; ``None`` where the options differ from row to row."""
    labels: dict[str, Counter[str]] = {}
    options: dict[str, set[tuple[str, ...]]] = {}
    for _, question_id, question in members:
        labels.setdefault(question_id, Counter())[question["names"][question["label"]]] += 1
        options.setdefault(question_id, set()).add(tuple(sorted(question["names"])))
    return {
        question_id: found.most_common(1)[0][0] if len(options[question_id]) == 1 else None
        for question_id, found in labels.items()
    }


def _right_by_default(common: str | None, question: Mapping[str, Any]) -> float:
    if common is None:
        return float(question.get("chance", 1 / len(question["names"])))
    return float(question["names"][question["label"]] == common)


def _better(difference: Estimate) -> str:
    if difference.low is None or difference.high is None:
        return "unclear"
    if difference.low > 0:
        return "yes"
    return "worse" if difference.high < 0 else "no"


def _words(better: str, difference: Estimate, against: str, numbers: str) -> str:
    if better == "no" and difference.low is None:
        return f"Not better than {against}: right on the very same questions, {numbers}."
    if difference.low is None or difference.high is None:
        return f"Too little to tell whether it is better than {against}: {numbers}; {difference.reason}."
    value, low, high = map(_points, (difference.value, difference.low, difference.high))
    reach = f"{value} points, with 95% confidence {low} to {high}"
    words = {
        "yes": f"Better than {against}: {numbers}. The difference is {reach}.",
        "worse": f"Worse than {against}: {numbers}. The difference is {reach}.",
        "no": f"Not better than {against}, as far as these rows tell: {numbers}. The difference is {reach}.",
    }
    return words[better]


def _named(common: Mapping[str, str | None]) -> str:
    named = [f"{label!r}" for label in common.values() if label is not None]
    if not named:
        return "guessing among the options"
    if len(common) == 1:
        return f"the commonest label, {named[0]}"
    shown = ", ".join(named[:MOST_NAMED]) + (", ..." if len(named) > MOST_NAMED else "")
    return f"the commonest label of each question ({shown})"


def _points(share: float | None) -> str:
    return f"{100 * (share or 0.0):+.1f}"
