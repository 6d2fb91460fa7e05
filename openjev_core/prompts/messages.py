"""A chat's messages in the form that templates take: all words in ``content``, all calls in ``tool_calls``."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from openjev_core.errors import MAX_PROBLEMS, Loc, Problem, RequestError
from openjev_core.json_document import compact, parse_document
from openjev_core.prompts.template import Message

REASONING = ("reasoning_content", "reasoning", "thinking")
"""Fields of a message that hold what a model thought before it spoke, by the names of several servers."""

UNSHOWN = (
    "attachment",
    "attachments",
    "experimental_attachments",
    "file",
    "files",
    "document",
    "documents",
    "image",
    "images",
    "image_url",
    "image_urls",
    "media",
    "video",
    "videos",
    "video_url",
    "audio_url",
    "toolInvocations",
)
"""Fields of a message that hold more than its words, and that no template shows."""

BESIDE_CONTENT = ("context", "subject", "title", "output", "result")
"""Fields that hold further words in some programs. A message without content is written whole, with these."""

OTHER_WORDS = ("text", "message")
"""Fields in which some programs keep, or repeat, a message's words."""

TEXT_PARTS = {
    "text": ("text",),
    "input_text": ("text",),
    "output_text": ("text",),
    "refusal": ("refusal",),
    "thinking": ("thinking",),
    "reasoning": ("text", "reasoning"),
}
"""Kinds of parts that are text, and the fields that may hold it."""

SPOKEN_PARTS = ("text", "input_text", "output_text", "refusal")
"""Kinds of parts that follow one another without a break."""

ARGUMENTS = ("arguments", "args", "input")
"""Names of a call's arguments, by the programs that write them."""

TOOL_PARTS = {
    "tool_use": "Tool call",
    "tool_call": "Tool call",
    "tool-call": "Tool call",
    "function_call": "Tool call",
    "tool_result": "Tool result",
    "tool-result": "Tool result",
    "function_call_output": "Tool result",
}
"""Kinds of parts that are shown as JSON, and the words before it."""

MEDIA_PARTS = ("image", "input_image", "audio", "input_audio", "video", "input_video", "file", "input_file", "document")
"""How the kinds of parts begin that hold no text."""


def plain_messages(messages: Sequence[Message], loc: Loc) -> list[Message]:
    """A chat's messages in the form that templates take.

    Args:
        messages: The messages of a chat, as :func:`openjev_core.prompts.state.messages_of` finds them.
        loc: Their path.

    Raises:
        RequestError: A message holds something that no template shows, such as an image, or something malformed.
    """
    plain: list[Message] = []
    problems: list[Problem] = []
    for index, message in enumerate(messages):
        # Most messages are this plain.
        if message.keys() <= {"role", "content"} and isinstance(message.get("content"), str):
            plain.append(message if message["role"] != "function" else {**message, "role": "tool"})
            continue
        try:
            plain.append(_plain(message))
        except RequestError as error:
            problems.extend(error.under(*loc, index).problems)
            if len(problems) > MAX_PROBLEMS:
                break
    if problems:
        raise RequestError(problems)
    return plain


def _plain(message: Message) -> Message:
    changed = dict(message)
    if message["role"] == "function":
        changed["role"] = "tool"
    problems = _unshown_problems(message)
    for step in (_put_parts, _put_words, _put_calls):
        try:
            step(changed)
        except RequestError as error:
            problems.extend(error.problems)
    if problems:
        raise RequestError(problems)
    return changed


def _unshown_problems(message: Message) -> list[Problem]:
    """Fields that hold something that would not reach the model."""
    msg = "does not reach the model: put its words into content, or leave the field out"
    problems = [Problem((name,), msg, "unsupported_content") for name in UNSHOWN if message.get(name)]
    content = message.get("content")
    if content:
        problems += [
            Problem((n,), f"stands beside content, and {msg}", "unsupported_content")
            for n in BESIDE_CONTENT
            if message.get(n)
        ]
    said = "".join(_text_of(part) or "" for part in content) if isinstance(content, list) else content or ""
    for name in OTHER_WORDS:
        words = message.get(name)
        if isinstance(words, str) and words.strip() not in ("", said.strip()):
            problems.append(Problem((name,), f"differs from content, and {msg}", "unsupported_content"))
    parts = message.get("parts")
    if isinstance(parts, list):
        for index, part in enumerate(parts):
            if len(problems) > MAX_PROBLEMS:
                break
            words = _text_of(part)
            if isinstance(part, dict) and part.get("type") in ("step-start", "reasoning"):
                continue  # a mark, and what the model thought before it said the content
            if words is None or words not in said:
                problems.append(Problem(("parts", index), f"stands beside content, and {msg}", "unsupported_content"))
    return problems


def _put_parts(message: Message) -> None:
    """Make every part of the content a text part; where some were none, one text with a line for each."""
    content = message.get("content")
    if not isinstance(content, list):
        return
    problems: list[Problem] = []
    texts: list[str] = []
    for index, part in enumerate(content):
        if len(problems) > MAX_PROBLEMS:
            break
        text = _text_of(part)
        if text is None:
            problems.append(_part_problem(part, ("content", index)))
        else:
            problems.extend(_nested_problems(part, ("content", index)))
            texts.append(text)
    if problems:
        raise RequestError(problems)
    if all(part["type"] in SPOKEN_PARTS for part in content):
        message["content"] = [{"type": "text", "text": text} for text in texts]
    else:
        message["content"] = "\n".join(texts)


def _text_of(part: Any) -> str | None:
    """The text that a part is shown as; ``None`` where it is none."""
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        return None
    if kind in TOOL_PARTS:
        return f"{TOOL_PARTS[kind]}: {compact({name: value for name, value in part.items() if name != 'type'})}"
    words = (part.get(name) for name in TEXT_PARTS.get(kind, ()))
    return next((word for word in words if isinstance(word, str)), None)


def _part_problem(part: Any, loc: Loc) -> Problem:
    kind = part.get("type") if isinstance(part, dict) else None
    if isinstance(kind, str) and kind.startswith(MEDIA_PARTS):
        msg = f"a part of type {kind[:40]!r}: this server reads text only, no images, audio, video or files"
        return Problem(loc, msg, "unsupported_content")
    if isinstance(kind, str) and kind not in TEXT_PARTS:
        accepted = ", ".join([*TEXT_PARTS, *TOOL_PARTS])
        return Problem(loc, f"a part of unknown type {kind[:40]!r}; accepted: {accepted}", "unsupported_content")
    return Problem(loc, 'expected a text part: {"type": "text", "text": "..."}', "type_error")


def _nested_problems(part: Mapping[str, Any], loc: Loc) -> list[Problem]:
    """Media inside the result of a tool."""
    media = (
        _part_problem(nested, (*loc, name, index))
        for name in ("content", "output", "result")
        if part["type"] in TOOL_PARTS and isinstance(part.get(name), list)
        for index, nested in enumerate(part[name])
        if isinstance(nested, dict) and str(nested.get("type")).startswith(MEDIA_PARTS)
    )
    return list(itertools.islice(media, MAX_PROBLEMS + 1))


def _put_words(message: Message) -> None:
    """Put what an assistant said into the content where it stands in a field of its own."""
    audio = message.pop("audio", None)
    if audio is not None and not (isinstance(audio, dict) and isinstance(audio.get("transcript"), str)):
        if not message.get("content"):
            msg = "this server reads text only; give the words as audio.transcript or as content"
            raise RequestError.at(("audio",), msg, "unsupported_content")
        audio = None
    refusal = message.pop("refusal", None)
    if not (refusal is None or isinstance(refusal, str)):
        raise RequestError.at(("refusal",), "expected a string or null", "type_error")
    content = message.get("content")
    for words in (audio["transcript"] if audio else "", refusal or ""):
        if not words or (isinstance(content, str) and words in content):
            continue
        if isinstance(content, list):
            content = [*content, {"type": "text", "text": f"\n{words}" if content else words}]
        else:
            content = f"{content}\n{words}" if content else words
    if content is not message.get("content"):
        message["content"] = content
    for name in REASONING:
        thought = message.get(name)
        if not content and isinstance(thought, str) and thought.strip():
            message[REASONING[0]] = thought
            break


def _put_calls(message: Message) -> None:
    """Put every call into ``tool_calls``, in the one form that all templates take; an empty ``tool_calls`` goes.

    A template would pass over what is no call in silence, or fail in words of its own.
    """
    calls, legacy = message.get("tool_calls"), message.pop("function_call", None)
    if not (calls is None or isinstance(calls, list)):
        raise RequestError.at(("tool_calls",), "expected an array of tool calls or null", "type_error")
    problems: list[Problem] = []
    plain = []
    for loc, call in [
        *((("tool_calls", index), call) for index, call in enumerate(calls or ())),
        *([(("function_call",), legacy)] if legacy is not None else []),
    ]:
        if len(problems) > MAX_PROBLEMS:
            break
        try:
            plain.append(_plain_call(call))
        except RequestError as error:
            problems.extend(error.under(*loc).problems)
    if plain and message["role"] != "assistant":
        msg = "only an assistant's turn has calls; give this one the role assistant, or leave the field out"
        problems.append(Problem(("tool_calls",), msg))
    if problems:
        raise RequestError(problems)
    message.pop("tool_calls", None)
    if plain:
        message["tool_calls"] = plain


def _plain_call(call: Any) -> dict[str, Any]:
    """A call as ``{"type": "function", "function": {"name", "arguments"}}``, its arguments as an object.

    Transcripts carry arguments as a JSON string, and templates iterate over an object. Some programs leave out the
    level ``function``, some call the arguments otherwise, and a custom tool has one text as its input.

    Raises:
        RequestError: It is no call, or its arguments are no object.
    """
    level = next((name for name in ("function", "custom") if isinstance(call, dict) and call.get(name)), None)
    function = call[level] if level else call
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        msg = 'expected a tool call: {"function": {"name": "...", "arguments": {...}}}'
        raise RequestError.at((), msg, "type_error")
    field = next((name for name in ARGUMENTS if function.get(name) is not None), None)
    loc: Loc = () if field is None else (level, field) if level else (field,)
    arguments = {} if field is None else function[field]
    if level == "custom" and isinstance(arguments, str):
        arguments = {"input": arguments}
    elif isinstance(arguments, str):
        arguments = _json_object(arguments, loc)
    elif not isinstance(arguments, dict):
        raise RequestError.at(loc, "expected a JSON object, or its text", "type_error")
    rest = {name: value for name, value in function.items() if name != field}
    if level:
        others = {name: value for name, value in call.items() if name != level}
        return {**others, "type": "function", "function": {**rest, "arguments": arguments}}
    name = rest.pop("name")
    return {**rest, "type": "function", "function": {"name": name, "arguments": arguments}}


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
