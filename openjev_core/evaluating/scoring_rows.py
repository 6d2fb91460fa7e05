"""Reading the scores of labelled rows, for a calibration."""

from __future__ import annotations

import math
from typing import Any

import stamina
from attrs import frozen

from openjev_core.engine.engine import Engine
from openjev_core.engine.request import ALIAS
from openjev_core.errors import PluginError, RequestError
from openjev_core.evaluating.asking import worth_retrying
from openjev_core.evaluating.checking import CheckedRow
from openjev_core.evaluating.recording import identity


@frozen
class ScoreRecorder:
    """Reads rows and records what each labelled readout's options got in each order."""

    engine: Engine

    async def record(self, checked: CheckedRow) -> dict[str, Any]:
        """One row's record; where the row is refused, why."""
        row = checked.row
        labelled = {key: question for key, question in checked.questions.items() if question.label is not None}
        found = {**identity(row), "model": self.engine.model.public_name}
        if not labelled:
            return {**found, "readouts": []}
        document = {"model": ALIAS, "state": row.state, "questions": {k: q.wire for k, q in labelled.items()}}
        try:
            async for attempt in stamina.retry_context(on=worth_retrying, attempts=3, timeout=None):
                with attempt:
                    scores = await self.engine.scores(self.engine.structure(document))
        except (RequestError, PluginError) as error:
            return {**identity(row), "error": str(error)}
        readouts = []
        for question_id, question in labelled.items():
            outcome = question.shape.outcomes[question.label or 0]
            for read, label in zip(scores[question_id], outcome, strict=True):
                orders = [{"labels": list(o.labels), "scores": [_written(s) for s in o.scores]} for o in read]
                readouts.append(
                    {"question": question_id, "type": question.shape.type, "label": label, "orders": orders}
                )
        return {**found, "readouts": readouts}


def _written(score: float) -> float | None:
    """A score as JSON, which has no minus infinity."""
    return score if math.isfinite(score) else None
