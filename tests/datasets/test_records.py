"""What a run keeps of an answer."""

from __future__ import annotations

import asyncio

import openjev_score
import pytest
from attrs import frozen

from openjev_core.datasets.askers import Reply
from openjev_core.datasets.checked_rows import check_rows
from openjev_core.datasets.records import EvaluationRecorder
from openjev_core.datasets.rows import Row
from openjev_core.plugins.registry import registry_of
from openjev_core.plugins.structuring import QuestionConverter

CONVERTER = QuestionConverter(registry_of(*openjev_score.openjev_question_types()))
QUESTION = {"type": "score", "criteria": ["calm", "cross", "furious"]}
ANSWER = {"type": "score", "score": 0.75, "probabilities": {"0": 0.5, "1": 0.25, "2": 0.25}, "confidence": 0.1}


@frozen
class OneAnswer:
    """Answers always the same."""

    async def ask(self, state, questions):
        return Reply(model="m", answers=dict.fromkeys(questions, ANSWER), input_tokens=1, output_tokens=1, seconds=0.1)


@pytest.mark.parametrize(("label", "error"), [(0, 0.75), (1, 0.25), (2, 1.25)])
def test_the_error_of_a_score_is_a_distance(label, error):
    row = Row(number=1, place="here", id="1", state="x", questions={"q": QUESTION}, labels={"q": label}, fields={})
    checked = check_rows([row], CONVERTER, labelled=True)

    record = asyncio.run(EvaluationRecorder(OneAnswer(), CONVERTER, checked, reorder=False, seed=0).record(row))

    judged = record["questions"]["q"]
    assert (label, 0, error) == (judged["label"], judged["predicted"], judged["error"])
