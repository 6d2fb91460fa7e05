"""What is wrong with a JSON value, in JSON's words and with its path; and what a plugin's code raised."""

from __future__ import annotations

import importlib
import re
import traceback
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attr
import attrs
import pluggy
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ForbiddenExtraKeysError,
    IterableValidationNote,
)

from openjev_core.errors import MAX_PROBLEMS, Loc, Problem, RequestError

JSON_NAMES: Mapping[type, str] = {
    str: "a string",
    dict: "an object",
    list: "an array",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    types.NoneType: "null",
}

MACHINERY = (
    "<frozen importlib",
    "<attrs generated",
    "<cattrs generated",
    *(str(Path(path).parent) for path in (importlib.__file__, pluggy.__file__, attr.__file__)),
    str(Path(__file__).parents[1]),
)
"""Path prefixes of frames that are left out of a traceback, because they are not the plugin's own."""

MAX_MESSAGE = 300
"""Characters of a class's own complaint that are passed on: validators quote the value that they were given."""


def json_name(value: Any) -> str:
    """What a JSON value is, in JSON's words."""
    return JSON_NAMES.get(type(value), type(value).__name__)


def mismatch(expected: str, value: Any) -> RequestError:
    """The error of a value that is not of the expected kind."""
    return RequestError.at((), f"expected {expected}, found {json_name(value)}", "type_error")


def problems_of(error: Exception, cls: type | None = None) -> list[Problem]:
    """The problems in a structuring error, each with its path.

    Args:
        error: What structuring raised.
        cls: The class that was structured.

    Raises:
        Exception: One that is no complaint about a value: a class of a plugin has a fault.
    """
    if isinstance(error, RequestError):
        return list(error.problems)
    if isinstance(error, ForbiddenExtraKeysError):
        accepted = ", ".join(field.name for field in attrs.fields(error.cl)) if attrs.has(error.cl) else ""
        msg = f"unknown field; accepted: {accepted or 'none'}"
        return [Problem((name,), msg, "extra_forbidden") for name in sorted(error.extra_fields)[: MAX_PROBLEMS + 1]]
    if isinstance(error, BaseValidationError):
        cls = error.cl if isinstance(error.cl, type) else cls
        return [problem for inner in error.exceptions for problem in _inner_problems(inner, cls)]
    if isinstance(error, (ValueError, TypeError)):
        msg = complaint_of(error) or f"not accepted by {cls.__name__ if cls else 'its type'}"
        msg = msg if len(msg) <= MAX_MESSAGE else msg[: MAX_MESSAGE - 1] + "…"
        return [Problem(_field_named(msg, cls), msg)]
    raise error


def _inner_problems(error: Exception, cls: type | None) -> list[Problem]:
    notes = (AttributeValidationNote, IterableValidationNote)
    part = _path_of(next((note for note in getattr(error, "__notes__", ()) if isinstance(note, notes)), None))
    if isinstance(error, KeyError) and part:
        return [Problem(part, "missing; this field is required", "missing")]
    return [Problem((*part, *p.loc), p.msg, p.type) for p in problems_of(error, cls)]


def _path_of(note: Any) -> Loc:
    if isinstance(note, AttributeValidationNote):
        return (note.name,)
    return (note.index,) if isinstance(note, IterableValidationNote) else ()


def complaint_of(error: BaseException) -> str:
    """What an exception says, in one line."""
    # attrs' own validators put the attribute, the rule and the value behind their message.
    by_validator = any(isinstance(arg, attrs.Attribute) for arg in error.args)
    return " ".join(str(error.args[0] if by_validator else error).split())


def raised(error: BaseException) -> str:
    """One line on what a plugin's code raised: its kind, its words, and the plugin's own line that raised it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(MACHINERY)]
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {complaint_of(error) or 'no message'}{where}"


def _field_named(msg: str, cls: type | None) -> Loc:
    """The path of a validator's complaint. attrs' own validators begin with their field's name in quotes."""
    named = re.match(r"'(\w+)' ", msg)
    fields = {field.name for field in attrs.fields(cls)} if cls is not None and attrs.has(cls) else set()
    return (named[1],) if named and named[1] in fields else ()
