"""From a row and its answers to its record in a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from openjev_core.errors import StartupError
from openjev_core.evaluating.asking import Asker, Refused, Reply
from openjev_core.evaluating.checking import CheckedQuestion, CheckedRow
from openjev_core.evaluating.reordering import REVERSED, SHUFFLED, Reordered, reorderings
from openjev_core.evaluating.rows import Row
from openjev_core.plugins.structuring import QuestionConverter


@frozen
class AnswerRecorder:
    """Answers rows, and records the answers as they came."""

    asker: Asker

    async def record(self, row: Row) -> dict[str, Any]:
        """One row's record; where the row is refused, why."""
        try:
            reply = await self.asker.ask(row.state, row.questions)
        except Refused as refusal:
            return {**identity(row), "error": str(refusal)}
        _check_complete(row, reply)
        return {**identity(row), **facts(reply), "answers": dict(reply.answers)}


@frozen
class EvaluationRecorder:
    """Answers rows, compares with their labels, and asks again with the options in other orders.

    Attributes:
        asker: Answers.
        converter: Knows the question types.
        reorder: Ask again in other orders.
        seed: Chooses the random orders.
    """

    asker: Asker
    converter: QuestionConverter
    reorder: bool
    seed: int

    async def record(self, checked: CheckedRow) -> dict[str, Any]:
        """One row's record; where the row is refused, why."""
        row = checked.row
        try:
            reply = await self.asker.ask(row.state, row.questions)
            _check_complete(row, reply)
            questions = {
                question_id: _judged(question, reply.answers[question_id])
                for question_id, question in checked.questions.items()
            }
            if self.reorder:
                await self._ask_reordered(checked, questions)
        except Refused as refusal:
            return {**identity(row), "error": str(refusal)}
        return {**identity(row), **facts(reply), "questions": questions, "answers": dict(reply.answers)}

    async def _ask_reordered(self, checked: CheckedRow, questions: Mapping[str, dict[str, Any]]) -> None:
        """Add to each question what it was answered in other orders of its options."""
        found = {
            question_id: reorderings(question.wire, question.shape, self.converter, f"{self.seed}:{checked.row.id}")
            for question_id, question in checked.questions.items()
        }
        for name in (REVERSED, SHUFFLED):
            asked: dict[str, Reordered] = {
                question_id: by_name[name] for question_id, by_name in found.items() if name in by_name
            }
            if not asked:
                continue
            reply = await self.asker.ask(checked.row.state, {key: one.wire for key, one in asked.items()})
            for question_id, one in asked.items():
                outcome = one.given(one.shape.predicted(reply.answers[question_id]))
                questions[question_id].setdefault("reordered", {})[name] = outcome


def identity(row: Row) -> dict[str, Any]:
    """What a record is known by."""
    return {"row": row.number, "id": row.id, "digest": row.digest}


def facts(reply: Reply) -> dict[str, Any]:
    """What a record says about its answering."""
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
    judged = {
        "type": shape.type,
        "kind": shape.kind,
        "names": list(shape.names),
        "positive": shape.positive,
        "label": question.label,
        "predicted": shape.predicted(answer, question.label),
        "probabilities": shape.probabilities(answer),
    }
    if shape.kind == "ordinal" and question.label is not None and isinstance(value, (int, float)):
        judged["error"] = abs(value - shape.answers[question.label][shape.headline])
    return judged


def _check_complete(row: Row, reply: Reply) -> None:
    if missing := [question_id for question_id in row.questions if question_id not in reply.answers]:
        raise StartupError(f"{row.place}: the answer to question {missing[0]!r} is missing in the server's response")
