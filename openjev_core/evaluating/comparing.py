"""Two runs over the same rows, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from openjev_core.errors import RequestError
from openjev_core.evaluating.intervals import LEVEL, RESAMPLES, estimate, paired_difference
from openjev_core.evaluating.items import Items, items_of, judged_questions
from openjev_core.evaluating.measures import MEASURES
from openjev_core.evaluating.report import Judged, grouped
from openjev_core.evaluating.run_file import read_run


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
