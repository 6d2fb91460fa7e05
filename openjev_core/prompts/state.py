"""States: which ones are chats, and the text of those that are none."""

from __future__ import annotations

from typing import Any

from openjev_core.errors import Loc
from openjev_core.json_document import compact
from openjev_core.prompts.message_fields import ABOUT, REASONING, UNSHOWN
from openjev_core.prompts.template import Message

MEDIA = ("assets", "images", "audio", "videos")
"""Top-level fields by which a request carries media: to answer without them would be a wrong answer."""

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})

WORDLESS = ABOUT.union(("role", "content", "tool_calls", "refusal", "audio", "function_call"), REASONING, UNSHOWN)
"""Fields that a message without words in its content may have: they are shown, refused by name, or no words."""


def messages_of(state: str | dict[str, Any] | list[Any]) -> tuple[list[Message], Loc] | None:
    """The messages of a state that is a chat, with their path in the request; ``None`` when it is none.

    A chat is a non-empty array of messages, or an object whose one key ``messages`` holds such an array. A message is
    an object with a role that chats have, and with its words in ``content`` (a text, parts or null) or with
    ``tool_calls``. What keeps its words elsewhere is no chat: it is written whole, so that they reach the model.
    """
    loc: Loc = ("state",)
    if isinstance(state, dict) and state.keys() == {"messages"}:
        state, loc = state["messages"], ("state", "messages")
    if not isinstance(state, list) or not state or not all(map(_is_message, state)):
        return None
    return state, loc


def _is_message(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or role not in ROLES:
        return False
    if content is not None and not isinstance(content, (str, list)):
        return False
    if content:
        return True
    if "content" not in item and not item.get("tool_calls"):
        return False
    return all(not value or name in WORDLESS for name, value in item.items())


def state_text(state: str | dict[str, Any] | list[Any]) -> str:
    """A state that is no chat, whole, as one text."""
    return state if isinstance(state, str) else compact(state)
