"""An engine starts on a model that carries its prompts, with the limits that both sides keep."""

from __future__ import annotations

import pytest
from chatml_model import CHATML
from scripted_backend import ScriptedBackend, scripted_engine

from openjev_core.errors import RequestError, StartupError


@pytest.mark.parametrize(
    ("backend", "setting", "expected"), [(4095, 32_768, 4096), (100_000, 32_768, 32_768), (99, 100, 100)]
)
def test_the_longest_branch_is_what_both_sides_take(backend, setting, expected):
    engine = scripted_engine(ScriptedBackend(max_prompt_tokens=backend), max_input_tokens=setting)
    assert expected == engine.limits.max_input_tokens


def test_limits_are_the_settings():
    limits = scripted_engine(max_questions=7, max_answers=9, max_concurrent_branches=5).limits
    assert (7, 9, 5) == (limits.max_questions, limits.max_answers_per_question, limits.max_concurrent_branches)


@pytest.mark.anyio
async def test_the_longest_prompt_leaves_room_for_its_answer():
    backend = ScriptedBackend(max_prompt_tokens=400)
    engine = scripted_engine(backend)
    question = {"q": {"type": "noul", "instructions": "Is it?"}}
    length, refused = 0, None
    while refused is None:
        length += 1
        try:
            await engine.evaluate(state="y" * length, questions=question)
        except RequestError as error:
            refused = error
    longest = max(len(prefix) + len(branch.suffix) for prefix, branch in backend.branches)
    assert 400 == longest
    assert "a branch of 402 tokens" in str(refused)


def test_more_answers_than_labels():
    with pytest.raises(StartupError, match="set OPENJEV_MAX_ANSWERS to 702 or less"):
        scripted_engine(max_answers=1000)


def test_a_template_that_takes_no_question():
    with pytest.raises(StartupError, match="refuses a plain user message"):
        scripted_engine(template=CHATML.replace("{{- message.content }}", ""))
