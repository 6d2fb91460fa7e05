"""A state of ``/v1/systemone`` as the input of OpenAI's ``/v1/decisions``, for whoever asks a server of that wire."""

from __future__ import annotations

from typing import Any

from openjev_core.json_document import compact

ROLES = frozenset({"system", "developer", "user", "assistant"})


def input_of(state: Any) -> str | list[dict[str, Any]]:
    """A chat of plain turns as messages, anything else as text: a server of systemone has its model read the same."""
    if isinstance(state, str):
        return state
    turns = state["messages"] if isinstance(state, dict) and state.keys() == {"messages"} else state
    if isinstance(turns, list) and turns and all(map(is_plain_turn, turns)):
        return [{"type": "message", **turn} for turn in turns]
    return compact(state)


def is_plain_turn(turn: Any) -> bool:
    """Whether a member of a state is a message of a role and a text alone."""
    return (
        isinstance(turn, dict)
        and turn.keys() == {"role", "content"}
        and turn["role"] in ROLES
        and isinstance(turn["content"], str)
    )
