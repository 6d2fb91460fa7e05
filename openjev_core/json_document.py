"""JSON as this server reads and writes it: strictly, and digit for digit.

What a lenient parser would repair in silence is refused here, with the place where it stands: duplicate keys, NaN,
numbers too large for a double, lone surrogates, invalid UTF-8, nesting that exists to exhaust a stack.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Collection, Iterator
from typing import Any

from openjev_core.errors import Loc, RequestError

MAX_DEPTH = 64
MAX_DIGITS = 4000
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""The byte order marks of UTF-16. UTF-32's little-endian one begins alike; without a mark, JSON's first characters have
a zero byte each."""
SURROGATE = re.compile("[\ud800-\udfff]")
ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""How a surrogate, paired or not, gets into a JSON document: valid UTF-8 holds none."""


def parse_document(data: bytes, what: str = "the body") -> Any:
    """Parse a JSON document.

    Args:
        data: Its bytes.
        what: What it is, for errors.

    Raises:
        RequestError: It is not one, or holds something that cannot be kept as it is. ``loc`` is the path in the
            document where that is known.
    """
    if data.startswith(UTF_16_MARKS) or b"\0" in data[:4]:
        raise _invalid(f"{what} is UTF-16 or UTF-32; send UTF-8")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _invalid(f"{what} is not valid UTF-8: {error.reason} at byte {error.start}") from None
    if text.startswith("\ufeff"):
        raise _invalid(f"{what} starts with a byte order mark; send plain UTF-8")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        if not text.strip():
            raise _invalid(f"{what} is not JSON: it is empty") from None
        raise _invalid(f"{what} is not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise _too_deep(what) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and deeper_than(MAX_DEPTH, value):
        raise _too_deep(what)
    if ESCAPED_SURROGATE.search(text):
        _check_surrogates(value)
    return value


def document_of(value: Any) -> Any:
    """A Python value as the JSON document that it stands for, held to the rules of :func:`parse_document`.

    Raises:
        RequestError: It is no JSON, or holds something that cannot be kept as it is.
    """
    try:
        data = json.dumps(value, allow_nan=False).encode()
    except RecursionError:
        raise _too_deep("the request") from None
    except (TypeError, ValueError) as error:
        raise _invalid(f"the request is no JSON: {error}") from error
    return parse_document(data, "the request")


def compact(value: Any) -> str:
    """Compact JSON: no spaces, keys in order, non-ASCII kept, integers digit for digit."""
    return _ENCODER.encode(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _invalid(msg: str) -> RequestError:
    return RequestError.at((), msg, "json_invalid")


def _too_deep(what: str) -> RequestError:
    return _invalid(f"{what} is nested too deep: more than {MAX_DEPTH} arrays and objects inside one another")


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise _invalid(f"an integer has more than {MAX_DIGITS} digits; send it as a string")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _invalid("a number is too large for a double; send it as a string")
    return value


def _constant(name: str) -> Any:
    raise _invalid(f"{name} is not JSON; leave the field out or send null where null is accepted")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _invalid(f"an object has the key {json.dumps(repeated[:80])} twice; keys must be unique")
    return value


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_constant, object_pairs_hook=_object)


def deeper_than(limit: int, value: Any) -> bool:
    """Whether more than ``limit`` arrays and objects stand inside one another."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(limit):
        level = [child for node in level for child in _children(node) if isinstance(child, (dict, list))]
    return bool(level)


def _children(node: Any) -> Collection[Any]:
    return node.values() if isinstance(node, dict) else node


def _check_surrogates(value: Any) -> None:
    try:
        compact(value).encode()
    except UnicodeEncodeError:
        # Looking for the place costs a walk, so it is done only where there is one to find.
        loc, what, code = next(_surrogates(value, ()))
        msg = f"{what} holds the lone surrogate \\u{ord(code):04x}, which is no character"
        raise RequestError.at(loc, msg, "string_unicode") from None


def _surrogates(node: Any, loc: Loc) -> Iterator[tuple[Loc, str, str]]:
    """Path, kind of place and character of every lone surrogate in a value."""
    if isinstance(node, str):
        if found := SURROGATE.search(node):
            yield loc, "the text", found.group()
    elif isinstance(node, dict):
        for key, child in node.items():
            if found := SURROGATE.search(key):
                yield loc, "a key", found.group()
            if isinstance(child, (str, dict, list)):
                yield from _surrogates(child, (*loc, key))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            if isinstance(child, (str, dict, list)):
                yield from _surrogates(child, (*loc, index))
