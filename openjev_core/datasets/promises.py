"""Whether a promise that a server makes about the answers it accepts holds on labelled rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from openjev_core.datasets.guarantees import one_of_each_row
from openjev_core.datasets.intervals import LEVEL, share
from openjev_core.datasets.items import judged_questions


def kept_promise(promise: Mapping[str, Any] | None, records: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """How the accepted answers did, by question id.

    Args:
        promise: ``share`` and ``confidence``, as the engine or server that answered says; ``None`` without one.
        records: Records of labelled rows.

    Returns:
        The promise, and for each question ``answers``, ``accepted``, ``wrong`` and the share of ``right`` ones with
        its interval; ``held`` is ``no`` where so many are wrong as would come by chance in less than 5% of such rows,
        ``yes`` where so few are, else ``unclear``. ``None`` where nothing was promised.
    """
    if promise is None:
        return None
    accepts = {
        (record["row"], question_id): answer.get("x_accept", False)
        for record in records
        for question_id, answer in record.get("answers", {}).items()
    }
    judged = [entry for entry in judged_questions(records) if entry[2]["label"] is not None]
    questions = []
    for name in dict.fromkeys(question_id for _, question_id, _ in judged):
        members = [entry for entry in judged if entry[1] == name]
        taken = [(row, q["predicted"] == q["label"]) for row, _, q in members if accepts[row, name]]
        rows = np.array([row for row, _ in taken], dtype=np.int64)
        right = np.array([one for _, one in taken], dtype=np.bool_)
        chosen = one_of_each_row(rows)
        questions.append(
            {
                "name": name,
                "answers": len(members),
                "accepted": len(taken),
                "wrong": int((~right).sum()),
                "right": share(right, rows).json(),
                "held": _held(int((~right[chosen]).sum()), len(chosen), 1 - promise["share"]),
            }
        )
    return {**promise, "questions": questions}


def _held(wrong: int, count: int, risk: float) -> str:
    if count and stats.binom.sf(wrong - 1, count, risk) < 1 - LEVEL:
        return "no"
    return "yes" if count and stats.binom.cdf(wrong, count, risk) < 1 - LEVEL else "unclear"
