"""Two runs of `openjev eval` side by side: other settings, another model, or another wording of the questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from openjev_core.datasets.intervals import LEVEL, sign_test
from openjev_core.datasets.items import Items, items_of, judged_questions
from openjev_core.datasets.measures import MEASURES
from openjev_core.datasets.reports import grouped, has_one_set
from openjev_core.datasets.runs import read_run
from openjev_core.datasets.verdicts import Judged
from openjev_core.errors import RequestError

Found = dict[tuple[str, str], Judged]
"""Row's name and question id to the judged question."""


def compare_runs(before: Path, after: Path) -> dict[str, Any]:
    """The comparison of two runs of `openjev eval`, as one JSON value.

    Compared are the labelled questions that both answered. Questions are known by their id, so their wording may
    differ; rows by the ids that the data gives them, or by their states where one of the two gives none.

    Raises:
        RequestError: A file is no such run, or the two have no labelled question in common.
    """
    (header_a, records_a), (header_b, records_b) = _run(before), _run(after)
    by_id = bool(header_a.get("ids") and header_b.get("ids"))
    a, b = _labelled(records_a, by_id=by_id), _labelled(records_b, by_id=by_id)
    common = [key for key in a if key in b]
    if not common:
        msg = f"the two runs have no labelled question in common: no row has the same {'id' if by_id else 'state'}, "
        raise RequestError.at((str(before), str(after)), f"{msg}with a label for a question of the same id")
    other_labels = sum(_label(a[key]) != _label(b[key]) for key in common)
    states = [{record["row"]: record["state"] for record in records} for records in (records_a, records_b)]
    other_states = len({a[key][0] for key in common if states[0][a[key][0]] != states[1][b[key][0]]})
    # Row numbers may differ between two files that share some rows; the first run's stand for both.
    pairs = {id(a[key][2]): (a[key][0], a[key][1], b[key][2]) for key in common}
    groups = grouped([a[key] for key in common])
    return {
        "verdict": [
            {"name": name, "words": _words(found := _compared(name, by, members, [pairs[id(m[2])] for m in members]))}
            | {"difference": found["measures"]["accuracy"]["difference"]}
            for name, by, members in groups
        ],
        "before": {"file": str(before), "run": header_a},
        "after": {"file": str(after), "run": header_b},
        "matched_by": "id" if by_id else "state",
        "questions": {
            "compared": len(common),
            "only_before": len(a) - len(common),
            "only_after": len(b) - len(common),
            "other_labels": other_labels,
            "other_states": other_states,
        },
        "groups": [_compared(name, by, members, [pairs[id(m[2])] for m in members]) for name, by, members in groups],
        "method": {
            "interval": f"{LEVEL:.0%}: Student's, on the differences of rows, since the questions of one row share its "
            "state",
            "p": "exact sign test on rows: how probable a difference in right answers as large as this is, were each "
            "row as likely to have its own the other way round (with one question per row: McNemar's)",
        },
    }


def _run(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    header, records = read_run(path)
    if header.get("command") != "eval":
        raise RequestError.at((str(path),), "is no run of `openjev eval`")
    if any("state" not in record for record in records):
        raise RequestError.at(
            (str(path),), "was written by an earlier openjev, without what rows are matched by; run it again"
        )
    return header, records


def _labelled(records: Sequence[Mapping[str, Any]], *, by_id: bool) -> Found:
    """The labelled questions of a run. Of rows with equal states, the first stands for the first, and so on."""
    names: dict[int, str] = {}
    seen: dict[str, int] = {}
    for record in records:
        name = record["id"] if by_id else record["state"]
        seen[name] = seen.get(name, 0) + 1
        names[record["row"]] = f"{seen[name]} {name}"
    return {
        (names[row], question_id): (row, question_id, question)
        for row, question_id, question in judged_questions(records)
        if question["label"] is not None
    }


def _label(judged: Judged) -> str:
    return str(judged[2]["names"][judged[2]["label"]])


def _compared(name: str, by: str, before: Sequence[Judged], after: Sequence[Judged]) -> dict[str, Any]:
    a, b = _items(before), _items(after)
    one_set = has_one_set(before) and has_one_set(after)
    measures = {
        measure.name: {
            "before": measure.estimate(a).json(),
            "after": measure.estimate(b).json(),
            "difference": measure.difference(a, b).json(),
        }
        for measure in MEASURES
        if measure.applies(a) and measure.applies(b) and (one_set or measure.name != "macro_f1")
    }
    changes = b.correct.astype(np.int64) - a.correct
    return {
        "name": name,
        "by": by,
        "count": len(a),
        "rows": len(np.unique(a.rows)),
        "measures": measures,
        "right": {
            "only_before": int((changes < 0).sum()),
            "only_after": int((changes > 0).sum()),
            "p": sign_test(changes, a.rows),
        },
    }


def _words(group: Mapping[str, Any]) -> str:
    accuracy = group["measures"]["accuracy"]
    found, difference = (
        f"{accuracy['before']['value']:.1%} before, {accuracy['after']['value']:.1%} after",
        accuracy["difference"],
    )
    if difference["low"] is None:
        return f"Too little to tell which is better: accuracy {found} on {group['rows']} rows; {difference['reason']}."
    reach = f"with 95% confidence {100 * difference['low']:+.1f} to {100 * difference['high']:+.1f} points"
    if difference["low"] > 0:
        return f"Better after: accuracy {found} on {group['rows']} rows, {reach}."
    if difference["high"] < 0:
        return f"Worse after: accuracy {found} on {group['rows']} rows, {reach}."
    return f"No difference that these rows show: accuracy {found} on {group['rows']} rows, {reach}."


def _items(judged: Sequence[Judged]) -> Items:
    return items_of([(row, question) for row, _, question in judged])
