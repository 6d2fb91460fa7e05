"""What was answered in place of what: confusion, one line per outcome, and the mistakes that look surest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import precision_recall_fscore_support

from openjev_core.datasets.intervals import share
from openjev_core.datasets.items import NO_OUTCOME, Items
from openjev_core.datasets.verdicts import Judged
from openjev_core.json_document import compact

MOST_IN_A_MATRIX = 12
"""Outcomes up to which all pairs of them are shown."""

MOST_PAIRS = 10
MOST_MISTAKES = 20
LONGEST_STATE = 1000
"""Characters of a state that are shown."""

NOTHING = "(none of them)"


def confusion(items: Items) -> dict[str, Any]:
    """Which outcome was answered for which label.

    Returns:
        ``pairs``: the commonest mistakes, each with ``label``, ``answered`` and ``count``; where the outcomes are few,
        ``names`` and ``counts`` too: a row for each label, a column for each answer.
    """
    counted = Counter(zip(items.labels.tolist(), items.predictions.tolist(), strict=True))
    wrong = [(pair, count) for pair, count in counted.most_common() if pair[0] != pair[1]]
    found: dict[str, Any] = {
        "pairs": [
            {"label": _name(items, label), "answered": _name(items, answer), "count": count}
            for (label, answer), count in wrong[:MOST_PAIRS]
        ]
    }
    outcomes = sorted({*items.labels.tolist(), *items.predictions.tolist()}, key=lambda one: _name(items, one))
    if len(outcomes) <= MOST_IN_A_MATRIX:
        found["names"] = [_name(items, one) for one in outcomes]
        found["counts"] = [[counted[label, answer] for answer in outcomes] for label in outcomes]
    return found


def by_outcome(items: Items) -> list[dict[str, Any]]:
    """For each outcome that is labelled or answered: how often, precision and recall with intervals, and F1."""
    outcomes = sorted({*items.labels.tolist(), *items.predictions.tolist()} - {NO_OUTCOME})
    _, _, f1, _ = precision_recall_fscore_support(items.labels, items.predictions, labels=outcomes, zero_division=0)
    return [
        {
            "name": items.names[outcome],
            "labelled": int((items.labels == outcome).sum()),
            "answered": int((items.predictions == outcome).sum()),
            "precision": _share_of(items, items.predictions == outcome),
            "recall": _share_of(items, items.labels == outcome),
            "f1": float(score),
        }
        for outcome, score in zip(outcomes, f1, strict=True)
    ]


def surest_mistakes(
    labelled: Sequence[Judged], states: Mapping[int, Any], ids: Mapping[int, str]
) -> list[dict[str, Any]]:
    """The wrong answers with the highest probability, with their states, so that a person can look.

    Args:
        labelled: Judged questions with labels.
        states: Row number to state.
        ids: Row number to the row's id.
    """
    wrong = [entry for entry in labelled if entry[2]["predicted"] != entry[2]["label"]]
    wrong.sort(key=lambda entry: -max(entry[2]["probabilities"] or [0.0]))
    return [
        {
            "row": row,
            "id": ids[row],
            "question": question_id,
            "label": question["names"][question["label"]],
            "answered": NOTHING if question["predicted"] is None else question["names"][question["predicted"]],
            "probability": max(question["probabilities"]) if question["probabilities"] else None,
            "state": _shortened(states[row]),
        }
        for row, question_id, question in wrong[:MOST_MISTAKES]
    ]


def _share_of(items: Items, among: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, Any]:
    return share(items.correct[among], items.rows[among]).json()


def _name(items: Items, outcome: int) -> str:
    return NOTHING if outcome == NO_OUTCOME else items.names[outcome]


def _shortened(state: Any) -> str:
    text = state if isinstance(state, str) else compact(state)
    return text if len(text) <= LONGEST_STATE else f"{text[:LONGEST_STATE]}… ({len(text)} characters)"
