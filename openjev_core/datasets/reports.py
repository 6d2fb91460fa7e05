"""The report of a run of `openjev eval` as one JSON value. It begins with the verdict."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from openjev_core.datasets.curves import risk_coverage
from openjev_core.datasets.guarantees import promised
from openjev_core.datasets.intervals import LEVEL, share
from openjev_core.datasets.items import Items, items_of, judged_questions, tells_probabilities
from openjev_core.datasets.measures import CALIBRATION_ERROR, MEASURES
from openjev_core.datasets.mistakes import by_outcome, confusion, surest_mistakes
from openjev_core.datasets.promises import kept_promise
from openjev_core.datasets.reliability import calibration_test, reliability
from openjev_core.datasets.reorderings import REVERSED, SHUFFLED
from openjev_core.datasets.rows import Row
from openjev_core.datasets.verdicts import Judged, verdict

MOST_QUESTIONS = 20
"""Question ids up to which each gets a group of its own beside its type's; more of them are not one questionnaire."""

SIZES = {"2": range(2, 3), "3 or more": range(3, sys.maxsize)}
"""Two options are told apart from more: read in every order, two are invariant by construction."""

FEW = 30
"""Labelled questions below which a group's numbers are marked as few."""

CERTAINTY = 0.95
"""How sure a suggested threshold is."""

METHOD = {
    "interval": f"{LEVEL:.0%}, from the spread between rows, since the questions of one row share its state. Shares: "
    "Wilson's; means: Student's, corrected for skewness; AUROC: Newcombe's; F1: of its logit. Where too few rows are "
    "there for an interval that holds, its place says why",
    "verdict": "better or worse than always giving the label that is the commonest in these very rows, which no "
    "classifier without a look at the state could beat here",
    "calibration error": CALIBRATION_ERROR,
    "thresholds": "on the probability of the most probable outcome (not the answer's `confidence`): the lowest of a "
    f"fixed grid for which the target can be promised with {CERTAINTY:.0%} confidence, one answer of each row counted",
}


def report_of(
    header: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
    rows: Sequence[Row],
    targets: Sequence[float],
    made: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The report of a run.

    Args:
        header: The run's first line.
        records: Its records, in row order.
        rows: The data set.
        targets: Accuracies to suggest thresholds for.
        made: Of what and when the report was made.
    """
    judged = judged_questions(records)
    labelled = [entry for entry in judged if entry[2]["label"] is not None]
    groups = grouped(labelled)
    return {
        "verdict": verdicts(labelled),
        "run": {**header, "model": next((r["model"] for r in records if "model" in r), None)},
        "made": dict(made or {}),
        "rows": {
            "in_data": len(rows),
            "answered": sum("error" not in record for record in records),
            "refused": [
                {"row": record["row"], "id": record["id"], "error": record["error"]}
                for record in records
                if "error" in record
            ],
        },
        "questions": {"asked": len(judged), "labelled": len(labelled)},
        "promise": kept_promise(header.get("promise"), records),
        "groups": [group_of(name, by, members, targets) for name, by, members in groups],
        "mistakes": surest_mistakes(labelled, {r.number: r.state for r in rows}, {r.number: r.id for r in rows}),
        "flips": flips(judged),
        "label_mass": label_mass(records),
        "calibrated": calibrated(records),
        "cost": cost(records),
        "method": METHOD,
    }


def verdicts(labelled: Sequence[Judged]) -> list[dict[str, Any]]:
    """The verdict on all questions, and where there are several, on each."""
    if not labelled:
        return []
    by_id = _split(labelled, lambda entry: entry[1])
    whole = verdict("all questions" if len(by_id) > 1 else by_id[0][0], labelled)
    each = [verdict(name, members) for name, members in by_id] if 1 < len(by_id) <= MOST_QUESTIONS else []
    return [whole, *each]


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
    one_set = has_one_set(members)
    group: dict[str, Any] = {
        "name": name,
        "by": by,
        "count": len(items),
        "rows": len(np.unique(items.rows)),
        "few": len(items) < FEW,
        "options": dict(sorted(Counter(str(len(question["names"])) for _, _, question in members).items())),
        "measures": measured(items, one_set=one_set),
    }
    if one_set:
        group["confusion"] = confusion(items)
        group["outcomes"] = by_outcome(items)
    if tells_probabilities(items):
        group["calibration"] = calibration_test(items)
        group["reliability"] = reliability(items)
        group["risk_coverage"] = risk_coverage(items)
        group["thresholds"] = [
            {
                **(found := promised(items.confidence, ~items.correct, items.rows, target, CERTAINTY)).json(),
                "words": found.words,
            }
            for target in targets
        ]
    return group


def has_one_set(members: Sequence[Judged]) -> bool:
    """Whether all questions have the same options: only then an F1 or a confusion of options means something."""
    return len({tuple(sorted(question["names"])) for _, _, question in members}) == 1


def measured(items: Items, *, one_set: bool) -> dict[str, Any]:
    """Every measure that applies, with its interval.

    Args:
        items: To be measured.
        one_set: All of them have the same options.
    """
    return {
        measure.name: measure.estimate(items).json()
        for measure in MEASURES
        if measure.applies(items) and (one_set or measure.name != "macro_f1")
    }


def flips(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """How often another order of the options changes the answer: by number of options, and by order."""
    found = []
    for options, sizes in SIZES.items():
        for order in (REVERSED, SHUFFLED):
            changed = [
                (row, question["reordered"][order] != question["predicted"])
                for row, _, question in judged
                if len(question["names"]) in sizes and order in question.get("reordered", {})
            ]
            if changed:
                rows, changes = map(np.array, zip(*changed, strict=True))
                found.append(
                    {"options": options, "order": order, "count": len(changed), "rate": share(changes, rows).json()}
                )
    return found


def label_mass(records: Sequence[Mapping[str, Any]]) -> dict[str, float] | None:
    """How much of the model's probability the labels held; ``None`` where its engine does not say.

    A low mass says that the model wanted to say something else, whatever the probabilities among the labels are.
    """
    found = [
        answer["x_label_mass"]
        for record in records
        for answer in record.get("answers", {}).values()
        if "x_label_mass" in answer
    ]
    if not found:
        return None
    return {"mean": float(np.mean(found)), **{f"p{p}": float(np.quantile(found, p / 100)) for p in (5, 50)}}


def calibrated(records: Sequence[Mapping[str, Any]]) -> dict[str, int] | None:
    """How many answers got which part of a calibration; ``None`` where none is applied."""
    parts = Counter(
        answer["x_calibration"]
        for record in records
        for answer in record.get("answers", {}).values()
        if "x_calibration" in answer
    )
    return {part: parts[part] for part in ("question", "type", "none")} if parts else None


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
