"""What is wrong with a JSON value, in JSON's words and with its path; and what a plugin's code raised."""

from __future__ import annotations

import importlib
import traceback
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attr
import attrs
import pluggy

from openjev_core.errors import RequestError

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
    "<frozen ",
    "<attrs generated",
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
    twice = isinstance(value, str) and value.lstrip().startswith(("{", "[")) and not expected.startswith("a string")
    hint = " that holds JSON; was it encoded twice?" if twice else ""
    return RequestError.at((), f"expected {expected}, found {json_name(value)}{hint}", "type_error")


def complaint_of(error: BaseException) -> str:
    """What an exception says, in one line that is not too long."""
    # attrs' own validators put the attribute, the rule and the value behind their message.
    by_validator = any(isinstance(arg, attrs.Attribute) for arg in error.args)
    try:
        said = " ".join(str(error.args[0] if by_validator else error).split())
    except Exception:  # noqa: BLE001 - an exception of a plugin's own may fail to say what it is
        said = ""
    return said if len(said) <= MAX_MESSAGE else said[: MAX_MESSAGE - 1] + "…"


def raised(error: BaseException) -> str:
    """One line on what a plugin's code raised: its kind, its words, and the plugin's own line that raised it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(MACHINERY)]
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {complaint_of(error) or 'no message'}{where}"
