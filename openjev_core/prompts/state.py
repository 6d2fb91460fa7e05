"""From a state to chat messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openjev_core.errors import Loc, Problem, RequestError
from openjev_core.json_document import compact, parse_document
from openjev_core.prompts.template import Message

MEDIA = ("assets", "images", "audio", "videos")
"""Top-level fields by which a request carries media: to answer without them would be a wrong answer."""

ROLES = ("system", "user", "assistant", "tool")


def messages_of(state: str | dict[str, Any] | list[Any]) -> tuple[list[Message], Loc] | None:
    """The messages of a state that is a chat, with their path in the request; ``None`` when it is none.

    A chat is a non-empty array of objects that all have a string ``role``, or an object whose one key ``messages``
    holds such an array.
    """
    loc: Loc = ("state",)
    if isinstance(state, dict) and state.keys() == {"messages"}:
        state, loc = state["messages"], ("state", "messages")
    if not isinstance(state, list) or not state:
        return None
    if not all(isinstance(item, dict) and isinstance(item.get("role"), str) for item in state):
        return None
    return state, loc


def state_text(state: str | dict[str, Any] | list[Any]) -> str:
    """A state that is no chat, whole, as one text."""
    return state if isinstance(state, str) else compact(state)


def check_messages(messages: Sequence[Message], loc: Loc) -> None:
    """Refuse what no template should see.

    Raises:
        RequestError: An unknown role, content that is not text, or an image, audio or video part.
    """
    problems: list[Problem] = []
    for index, message in enumerate(messages):
        here = (*loc, index)
        if message["role"] not in ROLES:
            accepted = ", ".join(ROLES)
            problems.append(Problem((*here, "role"), f"unknown role {message['role'][:40]!r}; accepted: {accepted}"))
        content = message.get("content")
        if isinstance(content, list):
            problems.extend(_part_problems(content, (*here, "content")))
        elif content is not None and not isinstance(content, str):
            msg = "expected a string, an array of text parts or null"
            problems.append(Problem((*here, "content"), msg, "type_error"))
        problems.extend(_call_problems(message.get("tool_calls"), (*here, "tool_calls")))
    if problems:
        raise RequestError(problems)


def _call_problems(calls: Any, loc: Loc) -> list[Problem]:
    """What is no tool call. A template would pass over it in silence, or stumble in words of its own."""
    if calls is None:
        return []
    if not isinstance(calls, list):
        return [Problem(loc, "expected an array of tool calls or null", "type_error")]
    msg = 'expected a tool call: {"function": {"name": "...", "arguments": {...}}}'
    return [Problem((*loc, index), msg, "type_error") for index, call in enumerate(calls) if not _is_call(call)]


def _is_call(call: Any) -> bool:
    # Some transcripts leave out the level `function`, and templates take both.
    function = call.get("function", call) if isinstance(call, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _part_problems(parts: Sequence[Any], loc: Loc) -> list[Problem]:
    problems = []
    for index, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str):
            continue
        if isinstance(kind, str) and kind != "text":
            msg = f"a part of type {kind[:40]!r}: this server reads text only, no images, audio or video"
            problems.append(Problem((*loc, index), msg, "unsupported_content"))
        else:
            msg = 'expected a text part: {"type": "text", "text": "..."}'
            problems.append(Problem((*loc, index), msg, "type_error"))
    return problems


def parse_tool_arguments(message: Message, loc: Loc) -> Message:
    """The message with each tool call's ``arguments`` as an object.

    Transcripts carry them as a JSON string; templates iterate over an object.

    Raises:
        RequestError: A string that holds no JSON object.
    """
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    parsed = []
    for index, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
            parsed.append(call)
            continue
        arguments = _json_object(function["arguments"], (*loc, "tool_calls", index, "function", "arguments"))
        parsed.append({**call, "function": {**function, "arguments": arguments}})
    return {**message, "tool_calls": parsed}


def _json_object(text: str, loc: Loc) -> dict[str, Any]:
    if not text.strip():
        return {}  # a call without arguments
    try:
        value = parse_document(text.encode(), what="the text")
    except RequestError as error:
        problem = error.problems[0]
        raise RequestError.at(loc, f"expected a JSON object, or its text; {problem.msg}", problem.type) from error
    if not isinstance(value, dict):
        raise RequestError.at(loc, "expected a JSON object, or its text; the text holds another value", "type_error")
    return value
