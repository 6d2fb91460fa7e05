"""A run's report: everything that is shown, as one JSON value."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from openjev_core.evaluating.curves import as_json, reliability, risk_coverage
from openjev_core.evaluating.intervals import LEVEL, RESAMPLES, estimate, share
from openjev_core.evaluating.items import Items, items_of, judged_questions
from openjev_core.evaluating.measures import CALIBRATION_ERROR, MEASURES, tells_probabilities
from openjev_core.evaluating.reordering import REVERSED, SHUFFLED

Judged = tuple[int, str, Mapping[str, Any]]

MOST_QUESTIONS = 20
"""Question ids up to which each gets a group of its own beside its type's; more of them are not one questionnaire."""

SIZES = {"2": range(2, 3), "3 or more": range(3, sys.maxsize)}
"""Two options are told apart from more: read in every order, two are invariant by construction."""

FEW = 30
"""Labelled questions below which a group's numbers are marked as few."""


def report_of(
    header: Mapping[str, Any], records: Sequence[Mapping[str, Any]], rows: int, targets: Sequence[float]
) -> dict[str, Any]:
    """The report of a run.

    Args:
        header: The run's first line.
        records: Its records, in row order.
        rows: Rows of the data set.
        targets: Accuracies to suggest thresholds for.
    """
    judged = judged_questions(records)
    labelled = [entry for entry in judged if entry[2]["label"] is not None]
    return {
        "run": {**header, "model": next((r["model"] for r in records if "model" in r), None)},
        "rows": {
            "in_data": rows,
            "answered": sum("error" not in record for record in records),
            "refused": [
                {"row": record["row"], "id": record["id"], "error": record["error"]}
                for record in records
                if "error" in record
            ],
        },
        "questions": {"asked": len(judged), "labelled": len(labelled)},
        "groups": [group_of(name, by, members, targets) for name, by, members in grouped(labelled)],
        "flips": flips(judged),
        "cost": cost(records),
        "method": {
            "interval": f"{LEVEL:.0%} percentile bootstrap over rows, {RESAMPLES} resamples; of flip rates: Wilson",
            "ece": CALIBRATION_ERROR,
            "thresholds": "lowest probability of the most probable outcome (not the answer's `confidence`) from which "
            "on the kept answers reach the target by a one-sided 95% lower bound",
        },
    }


def grouped(labelled: Sequence[Judged]) -> list[tuple[str, str, list[Judged]]]:
    """``(name, "type" or "question", members)``: by question type, then by question id where there are few of these."""
    groups = [(name, "type", members) for name, members in _split(labelled, lambda entry: str(entry[2]["type"]))]
    by_id = _split(labelled, lambda entry: entry[1])
    if 1 < len(by_id) <= MOST_QUESTIONS:
        groups.extend((name, "question", members) for name, members in by_id)
    return groups


def group_of(name: str, by: str, members: Sequence[Judged], targets: Sequence[float]) -> dict[str, Any]:
    """One group's numbers."""
    items = items_of([(row, question) for row, _, question in members])
    group: dict[str, Any] = {
        "name": name,
        "by": by,
        "count": len(items),
        "few": len(items) < FEW,
        "options": dict(sorted(Counter(str(len(question["names"])) for _, _, question in members).items())),
        "measures": measured(items, one_set=len({tuple(sorted(q["names"])) for _, _, q in members}) == 1),
    }
    if tells_probabilities(items):
        curve = risk_coverage(items)
        group["reliability"] = as_json(reliability(items))
        group["risk_coverage"] = curve.json()
        group["thresholds"] = as_json([curve.suggest(target) for target in targets])
    return group


def measured(items: Items, *, one_set: bool) -> dict[str, Any]:
    """Every measure that applies, with its interval.

    Args:
        items: To be measured.
        one_set: All of them have the same options: an F1 per option means something.
    """
    return {
        measure.name: estimate(items, measure.of).json()
        for measure in MEASURES
        if measure.applies(items) and (one_set or measure.name != "macro_f1")
    }


def flips(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """How often another order of the options changes the answer: by number of options, and by order."""
    found = []
    for options, sizes in SIZES.items():
        for order in (REVERSED, SHUFFLED):
            changed = [
                question["reordered"][order] != question["predicted"]
                for _, _, question in judged
                if len(question["names"]) in sizes and order in question.get("reordered", {})
            ]
            if changed:
                rate = share(sum(changed), len(changed)).json()
                found.append({"options": options, "order": order, "count": len(changed), "rate": rate})
    return found


def cost(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Seconds and tokens per row, as given; asking again in other orders is not counted."""
    answered = [record for record in records if "error" not in record]
    if not answered:
        return {}
    seconds = np.array([record["seconds"] for record in answered])
    return {
        "seconds": {f"p{p}": float(np.quantile(seconds, p / 100)) for p in (50, 90, 99)},
        "input_tokens": sum(record["input_tokens"] for record in answered),
        "output_tokens": sum(record["output_tokens"] for record in answered),
        "input_tokens_per_row": math.fsum(record["input_tokens"] for record in answered) / len(answered),
    }


def _split(entries: Sequence[Judged], key: Callable[[Judged], str]) -> list[tuple[str, list[Judged]]]:
    found: dict[str, list[Judged]] = {}
    for entry in entries:
        found.setdefault(key(entry), []).append(entry)
    return sorted(found.items())
