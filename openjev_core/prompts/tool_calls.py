"""The calls of an assistant's turn, in the one form that all templates take."""

from __future__ import annotations

from typing import Any

from openjev_core.errors import MAX_PROBLEMS, Loc, Problem, RequestError
from openjev_core.json_document import parse_document
from openjev_core.prompts.message_fields import unshown_problems
from openjev_core.prompts.template import Message

ARGUMENTS = ("arguments", "args", "input", "parameters")
"""Names of a call's arguments, by the programs that write them."""


def put_calls(message: Message) -> None:
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
        RequestError: It is no call, its arguments are no object, or it holds more than these, such as its result.
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
    problems = unshown_problems(rest, ())
    if level:
        others = {name: value for name, value in call.items() if name != level}
        problems = [Problem((level, *one.loc), one.msg, one.type) for one in problems] + unshown_problems(others, ())
    if problems:
        raise RequestError(problems)
    if level:
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
