"""A question's prompts as text, for snapshots and for people."""

from __future__ import annotations

from typing import Any

from openjev_core.engine.plan import plan
from openjev_core.question import QuestionType
from openjev_core.testing.scripted import scripted_engine

STATE = "The state stands here."


def rendered_prompts(question_type: QuestionType[Any, Any], question: Any, *, state: str = STATE) -> str:
    """What the model reads for a question: the shared prefix, then each readout's own part.

    Args:
        question_type: Its type.
        question: An instance of the type's question class.
        state: What it is asked about.

    Returns:
        The prompts in ChatML, whatever model is installed, so that a snapshot of them changes with the type alone.

    Raises:
        InvalidQuestion, RequestError: As for a request.
        PluginError: The type broke its contract.
    """
    reader = scripted_engine(question_type).reader
    session = reader.session(state)
    planned = plan(question_type, question, 1, reader.limits.max_answers_per_question)
    shown = session.shown({"question": session.prepare(question_type, planned)})
    prefix, branches = shown["prefix"], shown["branches"]
    count = len(branches)
    parts = [f"=== prefix, shared by {count} readout{'s' * (count != 1)} ===\n{prefix}"]
    parts.extend(f"=== readout {b['readout']} ===\n{b['prompt'].removeprefix(prefix)}" for b in branches)
    return "\n".join(parts)
