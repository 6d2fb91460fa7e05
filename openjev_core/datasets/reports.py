"""Reports as JSON values: what a run of `openjev eval` says, and two runs side by side."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from openjev_core.datasets.curves import as_json, reliability, risk_coverage
from openjev_core.datasets.intervals import LEVEL, RESAMPLES, estimate, paired_difference, share
from openjev_core.datasets.measures import (
    CALIBRATION_ERROR,
    MEASURES,
    Items,
    items_of,
    judged_questions,
    tells_probabilities,
)
from openjev_core.datasets.reorderings import REVERSED, SHUFFLED
from openjev_core.datasets.runs import read_run
from openjev_core.errors import RequestError

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


def compare_runs(before: Path, after: Path) -> dict[str, Any]:
    """The comparison of two runs of `openjev eval`, as one JSON value.

    Compared are the labelled questions that both answered; rows are known by id and content.

    Raises:
        RequestError: A file is no such run, or the two have no labelled question in common.
    """
    (header_a, a), (header_b, b) = _run(before), _run(after)
    common = [key for key in a if key in b]
    if not common:
        msg = "the two runs have no labelled question in common: no row has the same id, state, questions and labels"
        raise RequestError.at((str(before), str(after)), msg)
    pairs = [(a[key], b[key]) for key in common]
    # Row numbers may differ between two files that share some rows; the first run's stand for both.
    partner = {id(one[2]): (one[0], one[1], other[2]) for one, other in pairs}
    groups = grouped([one for one, _ in pairs])
    return {
        "before": {"file": str(before), "run": header_a},
        "after": {"file": str(after), "run": header_b},
        "questions": {"compared": len(common), "only_before": len(a) - len(common), "only_after": len(b) - len(common)},
        "groups": [_compared(name, by, members, [partner[id(m[2])] for m in members]) for name, by, members in groups],
        "method": {
            "interval": f"{LEVEL:.0%} percentile bootstrap over rows, {RESAMPLES} resamples, both runs resampled alike",
            "p": "exact McNemar test on the answers that only one of the two got right",
        },
    }


def _run(path: Path) -> tuple[dict[str, Any], dict[tuple[str, str, str], Judged]]:
    header, records = read_run(path)
    if header.get("command") != "eval":
        raise RequestError.at((str(path),), "is no run of `openjev eval`")
    by_row = {record["row"]: record for record in records}
    labelled = {
        (by_row[row]["id"], by_row[row]["digest"], question_id): (row, question_id, question)
        for row, question_id, question in judged_questions(records)
        if question["label"] is not None
    }
    return header, labelled


def _compared(name: str, by: str, before: Sequence[Judged], after: Sequence[Judged]) -> dict[str, Any]:
    a, b = _items(before), _items(after)
    one_set = len({tuple(sorted(question["names"])) for _, _, question in before}) == 1
    measures = {
        measure.name: {
            "before": estimate(a, measure.of).json(),
            "after": estimate(b, measure.of).json(),
            "difference": paired_difference(a, b, measure.of).json(),
        }
        for measure in MEASURES
        if measure.applies(a) and measure.applies(b) and (one_set or measure.name != "macro_f1")
    }
    return {"name": name, "by": by, "count": len(a), "measures": measures, "mcnemar": _mcnemar(a, b)}


def _items(judged: Sequence[tuple[int, str, Mapping[str, Any]]]) -> Items:
    return items_of([(row, question) for row, _, question in judged])


def _mcnemar(before: Items, after: Items) -> dict[str, Any]:
    only_before = int(np.sum(before.correct & ~after.correct))
    only_after = int(np.sum(after.correct & ~before.correct))
    differing = only_before + only_after
    p = float(stats.binomtest(only_before, differing).pvalue) if differing else 1.0
    return {"only_before_right": only_before, "only_after_right": only_after, "p": p}
