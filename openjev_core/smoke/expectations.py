"""What the wire contract says of values: each function returns what it checked or raises ``Mismatch``."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from openjev_core.errors import RequestError
from openjev_core.json_document import compact, parse_document
from openjev_core.smoke.calls import Call
from openjev_core.smoke.verdicts import Mismatch

TOLERANCE = 1e-6
"""How far a sum of full-precision probabilities may be from 1."""

SHOWN_CHARACTERS = 200


def expect(condition: bool, expected: str, found: Any) -> None:
    """Raise ``Mismatch`` unless ``condition`` holds."""
    if not condition:
        raise Mismatch(f"expected {expected}, found {brief(found)}")


def brief(value: Any) -> str:
    """A JSON value on one line, cut where it is long."""
    try:
        text = compact(value)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}... ({len(text)} characters)"


def json_of(call: Call, status: int) -> Any:
    """The JSON of a reply that has that status, an honest content type and a request id."""
    if call.fault is not None or call.status != status:
        hint = ""
        if call.status == 401:  # noqa: PLR2004 - HTTP's own number
            hint = "; the server asks for a key: give it with --key or OPENJEV_API_KEY"
        elif call.headers.get("location"):
            hint = f"; the server points to {call.headers['location']}: give that address instead"
        raise Mismatch(f"{call.method} {call.path}: expected status {status}, found {call.outcome}{hint}")
    content_type = call.headers.get("content-type", "")
    expect(content_type.split(";")[0].strip() == "application/json", "the content type application/json", content_type)
    expect(bool(call.headers.get("x-typesafe-request-id")), "a header x-typesafe-request-id", "none")
    try:
        return parse_document(call.body)
    except RequestError as error:
        raise Mismatch(f"{call.method} {call.path}: expected JSON, but {error}") from None


def object_with(value: Any, what: str, *, required: Collection[str]) -> dict[str, Any]:
    """An object that has the required fields, and beyond them none, or only such as start with ``x_``."""
    expect(isinstance(value, dict), f"{what} to be an object", value)
    fields: dict[str, Any] = value
    if missing := [name for name in required if name not in fields]:
        raise Mismatch(f"expected {what} to have {', '.join(missing)}, found {brief(fields)}")
    others = [name for name in fields if name not in required and not name.startswith("x_")]
    expect(not others, f"{what} to have no fields but {', '.join(required)} and x_...", others)
    return fields


def integer(value: Any, what: str, low: int = 0) -> int:
    """A JSON integer of at least ``low``."""
    expect(type(value) is int and value >= low, f"{what} to be an integer from {low} up", value)
    number: int = value
    return number


def number_between(value: Any, what: str, low: float, high: float) -> float:
    """A finite number in a closed range, up to :data:`TOLERANCE` outside of it."""
    fits = type(value) in (int, float) and math.isfinite(value) and low - TOLERANCE <= value <= high + TOLERANCE
    expect(fits, f"{what} to be a number from {low:g} to {high:g}", value)
    return float(value)


def distribution(value: Any, what: str, names: Collection[str]) -> Mapping[str, float]:
    """Probabilities of exactly these names, which sum to 1."""
    expect(isinstance(value, dict), f"{what} to be an object", value)
    expect(set(value) == set(names), f"{what} to have exactly the keys {brief(list(names))}", list(value))
    probabilities = {name: number_between(p, f"{what} of {brief(name)}", 0, 1) for name, p in value.items()}
    total = math.fsum(probabilities.values())
    expect(abs(total - 1) <= TOLERANCE, f"{what} to sum to 1", total)
    return probabilities


def header_integer(call: Call, name: str) -> int | None:
    """A header that holds a count; ``None`` where the server does not send it."""
    text = call.headers.get(name)
    if text is None:
        return None
    expect(text.isascii() and text.isdigit(), f"the header {name} to be a count", text)
    return int(text)
