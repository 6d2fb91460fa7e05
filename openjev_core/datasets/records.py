"""The record of a row in a run, as each command makes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from openjev_core.client.server import Refused
from openjev_core.datasets.askers import Asker, Reply, retried
from openjev_core.datasets.checked_rows import CheckedQuestion, CheckedRows
from openjev_core.datasets.reorderings import REVERSED, SHUFFLED, reorderings
from openjev_core.datasets.rows import Row
from openjev_core.datasets.shapes import Shape
from openjev_core.datasets.targets import TargetShape
from openjev_core.engine.calibrated import name_of
from openjev_core.engine.engine import Engine
from openjev_core.engine.request import ALIAS
from openjev_core.errors import PluginError, RequestError, StartupError
from openjev_core.plugins.structuring import QuestionConverter


async def answer_record(asker: Asker, row: Row) -> dict[str, Any]:
    """The record of one row for `openjev batch`: its answers, or why it was refused."""
    try:
        reply = await asker.ask(row.state, row.questions)
    except Refused as refusal:
        return {**identity(row), "error": str(refusal)}
    _check_complete(row, reply)
    return {**identity(row), **_facts(reply), "answers": dict(reply.answers)}


@frozen
class EvaluationRecorder:
    """Records rows with their answers and how these compare with the labels, for `openjev eval`.

    Attributes:
        asker: Answers the questions.
        converter: Structures questions by the installed types.
        checked: The questions of every row.
        reorder: Whether each question is asked again with its options in other orders.
        seed: Chooses the random orders.
    """

    asker: Asker
    converter: QuestionConverter
    checked: CheckedRows
    reorder: bool
    seed: int

    async def record(self, row: Row) -> dict[str, Any]:
        """The record of one row: its judged questions and answers, or why it was refused."""
        try:
            reply = await self.asker.ask(row.state, row.questions)
            _check_complete(row, reply)
            questions = {
                question_id: _judged(question, reply.answers[question_id])
                for question_id, question in self.checked[row.number].items()
            }
            if self.reorder:
                await self._add_other_orders(row, questions)
        except Refused as refusal:
            return {**identity(row), "error": str(refusal)}
        return {**identity(row), **_facts(reply), "questions": questions, "answers": dict(reply.answers)}

    async def _add_other_orders(self, row: Row, questions: Mapping[str, dict[str, Any]]) -> None:
        """Add to each judged question the outcomes that are predicted with its options in other orders."""
        by_question = {
            question_id: reorderings(question.wire, question.shape, self.converter, f"{self.seed}:{row.id}")
            for question_id, question in self.checked[row.number].items()
        }
        for name in (REVERSED, SHUFFLED):
            reordered = {question_id: orders[name] for question_id, orders in by_question.items() if name in orders}
            if not reordered:
                continue
            reply = await self.asker.ask(row.state, {key: one.wire for key, one in reordered.items()})
            for question_id, one in reordered.items():
                outcome = one.given(one.shape.predicted(reply.answers[question_id]))
                questions[question_id].setdefault("reordered", {})[name] = outcome


LONGEST_TEXT = 80
"""Characters of a question that a file and a report show."""


@frozen
class ScoreRecorder:
    """Records rows with the scores that each labelled readout's options got in each order, for `openjev calibrate`.

    Attributes:
        engine: Reads the questions.
        checked: The questions of every row.
    """

    engine: Engine
    checked: CheckedRows

    async def record(self, row: Row) -> dict[str, Any]:
        """The record of one row: the scores of its labelled questions, or why it was refused."""
        labelled = {key: question for key, question in self.checked[row.number].items() if question.label is not None}
        if not labelled:
            return {**identity(row), "model": self.engine.model.public_name, "readouts": []}
        document = {"model": ALIAS, "state": row.state, "questions": {k: q.wire for k, q in labelled.items()}}
        try:
            request = self.engine.structure(document)
            scores = await retried(self.engine.scores, request)
        except (RequestError, PluginError) as error:
            return {**identity(row), "error": str(error)}
        readouts = []
        for question_id, question in labelled.items():
            scored, asked = scores[question_id], request.questions[question_id]
            positions = question.shape.positions(question.label or 0, [one.readout for one in scored])
            for read, label in zip(scored, positions, strict=True):
                if label is None:
                    continue
                # JSON has no minus infinity.
                orders = [
                    {"labels": list(o.labels), "scores": [s if math.isfinite(s) else None for s in o.scores]}
                    for o in read.orders
                ]
                name = name_of(asked.type, asked.value, read.readout)
                readouts.append(
                    {
                        "question": question_id,
                        "type": question.shape.type,
                        "digest": name.digest,
                        "text": read.readout.text[:LONGEST_TEXT],
                        "options": [read.readout.options[i].text for i in name.order],
                        "order": list(name.order),
                        "label": label,
                        "orders": orders,
                    }
                )
        return {**identity(row), "model": self.engine.model.public_name, "readouts": readouts}


def identity(row: Row) -> dict[str, Any]:
    """The fields by which a record is matched with its row."""
    return {"row": row.number, "id": row.id, "digest": row.digest, "state": row.state_digest}


def _facts(reply: Reply) -> dict[str, Any]:
    """What a record says about how its row was answered."""
    return {
        "model": reply.model,
        "seconds": round(reply.seconds, 6),
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
    }


def _judged(question: CheckedQuestion, answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer in the terms of its question's outcomes."""
    shape = question.shape
    value = answer.get(shape.headline)
    judged: dict[str, Any] = {
        "type": shape.type,
        "kind": shape.kind,
        "names": list(shape.names),
        "positive": shape.positive,
        "label": question.label,
        "predicted": shape.predicted(answer, question.label),
        "probabilities": shape.probabilities(answer),
    }
    if question.label is not None and isinstance(shape, TargetShape):
        judged["chance"] = shape.chance(question.label)
    if (
        isinstance(shape, Shape)
        and shape.kind == "ordinal"
        and question.label is not None
        and isinstance(value, (int, float))
    ):
        judged["error"] = abs(value - shape.answers[question.label][shape.headline])
    return judged


def _check_complete(row: Row, reply: Reply) -> None:
    if missing := [question_id for question_id in row.questions if question_id not in reply.answers]:
        raise StartupError(f"{row.place}: the answer to question {missing[0]!r} is missing in the server's response")
