"""Python values as JSON has them, and what in a value is no JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

import attrs

from openjev_core.errors import Loc
from openjev_core.json_document import SURROGATE
from openjev_core.plugins.forms import DATES, Field


def as_json(value: Any, fields: Callable[[type], Iterable[Field]]) -> Any:
    """A value with its objects, enumerations and dates as JSON has them, whatever else it holds.

    Args:
        value: Made of instances of attrs classes, and of what these hold.
        fields: The fields of a class that are written.
    """
    if attrs.has(type(value)):
        return {field.name: as_json(getattr(value, field.attribute.name), fields) for field in fields(type(value))}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, DATES):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: as_json(child, fields) for key, child in value.items()}
    return [as_json(child, fields) for child in value] if isinstance(value, (list, tuple)) else value


def json_fault(value: Any, loc: Loc = ()) -> str | None:  # noqa: PLR0911 - one return per kind of JSON value
    """What in ``value`` is no finite JSON, with its path; ``None`` when all of it is."""
    if isinstance(value, float):
        return None if math.isfinite(value) else f"a number that is not finite at {place(loc)}"
    if isinstance(value, str):
        return f"a lone surrogate, which is no character, at {place(loc)}" if SURROGATE.search(value) else None
    if value is None or isinstance(value, (bool, int)):
        return None
    if isinstance(value, Mapping):
        for key, child in value.items():
            if not isinstance(key, str) or SURROGATE.search(key):
                return f"a key that is no string of characters at {place(loc)}"
            if (fault := json_fault(child, (*loc, key))) is not None:
                return fault
        return None
    if isinstance(value, (list, tuple)):
        faults = (json_fault(child, (*loc, index)) for index, child in enumerate(value))
        return next((fault for fault in faults if fault is not None), None)
    return f"a {type(value).__name__}, which is no JSON, at {place(loc)}"


def place(loc: Loc) -> str:
    """A path as it is written in messages."""
    return ".".join(str(part) for part in loc)
