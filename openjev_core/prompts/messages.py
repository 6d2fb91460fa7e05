"""A chat's messages in the form that templates take: all words in ``content``, all calls in ``tool_calls``."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from openjev_core.errors import MAX_PROBLEMS, Loc, Problem, RequestError
from openjev_core.json_document import compact
from openjev_core.prompts.message_fields import REASONING, thought_in, unshown_problems
from openjev_core.prompts.template import Message
from openjev_core.prompts.tool_calls import put_calls

SHOWN = frozenset({"role", "content", "tool_calls", "function_call", "refusal", "audio", *REASONING})
"""Fields of a message that reach the model."""

REPEATED = ("text", "message", "parts")
"""Fields in which some programs keep a message's words a second time. They may say the same as its content."""

TEXT_PARTS = {
    "text": ("text",),
    "input_text": ("text",),
    "output_text": ("text",),
    "refusal": ("refusal",),
    "thinking": ("thinking",),
    "reasoning": ("text", "reasoning", "summary", "content"),
}
"""Kinds of parts that are text, and the fields that may hold it."""

SPOKEN_PARTS = ("text", "input_text", "output_text", "refusal")
"""Kinds of parts that follow one another without a break."""

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
    problems = unshown_problems(message, SHOWN.union(REPEATED)) + _repetition_problems(message)
    for step in (_put_parts, _put_words, put_calls):
        try:
            step(changed)
        except RequestError as error:
            problems.extend(error.problems)
    if problems:
        raise RequestError(problems)
    return changed


def _repetition_problems(message: Message) -> list[Problem]:
    """Fields that some programs repeat the content in, and that say something else here."""
    msg = "does not reach the model: put its words into content, or leave the field out"
    said: str | None = None
    problems = []
    for name in REPEATED:
        if not (words := message.get(name)):
            continue
        if said is None:
            said = _spoken(message.get("content"))
        if _spoken(words) != said:
            problems.append(Problem((name,), f"says something else than content, and {msg}", "unsupported_content"))
    return problems


def _spoken(words: Any) -> str | None:
    """What a text or parts say, without white space; ``None`` where something in them is no text.

    What a model thought before it spoke does not count, nor does a mark between its steps.
    """
    if words is None or isinstance(words, str):
        return "".join((words or "").split())
    if not isinstance(words, list):
        return None
    texts = [
        _text_of(part)
        for part in words
        if not (isinstance(part, dict) and part.get("type") in ("step-start", "thinking", "reasoning"))
    ]
    return None if None in texts else "".join("".join(filter(None, texts)).split())


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
        elif part["type"] in TOOL_PARTS:
            problems.extend(_nested_problems(part, ("content", index)))
        else:
            unshown = unshown_problems(part, TEXT_PARTS[part["type"]])
            problems.extend(Problem(("content", index, *one.loc), one.msg, one.type) for one in unshown)
        texts.append(text or "")
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
    fields = TEXT_PARTS.get(kind, ())
    if kind in SPOKEN_PARTS:
        return next((words for name in fields if isinstance(words := part.get(name), str)), None)
    thoughts = [thought_in(part[name]) for name in fields if isinstance(part.get(name), (str, list))]
    return "\n".join(filter(None, thoughts)) if thoughts else None


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
        if isinstance(part.get(name), list)
        for index, nested in enumerate(part[name])
        if isinstance(nested, dict) and str(nested.get("type")).startswith(MEDIA_PARTS)
    )
    return list(itertools.islice(media, MAX_PROBLEMS + 1))


def _put_words(message: Message) -> None:
    """Put what an assistant said into the content where it stands in a field of its own.

    Thoughts of any shape become ``reasoning_content``: a template shows them beside an answer or not, and
    :mod:`openjev_core.prompts.chat` sees to it that they are shown where there is no answer.
    """
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
        if not words or (isinstance(content, str) and words.strip() == content.strip()):
            continue
        if isinstance(content, list):
            content = [*content, {"type": "text", "text": f"\n{words}" if content else words}]
        else:
            content = f"{content}\n{words}" if content else words
    thoughts = map(thought_in, (message.get(name) for name in REASONING))
    if thought := next((one for one in thoughts if one.strip()), ""):
        message[REASONING[0]] = thought
        if isinstance(content, str) and not content.strip():
            content = ""
    if content is not message.get("content"):
        message["content"] = content


def joined(contents: Sequence[Any]) -> Any:
    """The words of several turns as those of one, with a blank line between them."""
    if not any(isinstance(content, list) for content in contents):
        return "\n\n".join(filter(None, contents))
    parts: list[Any] = []
    for content in contents:
        if isinstance(content, str):
            parts.append({"type": "text", "text": f"\n\n{content}" if parts else content})
        else:
            parts.extend([{"type": "text", "text": "\n\n"}, *content] if parts and content else content or [])
    return parts
