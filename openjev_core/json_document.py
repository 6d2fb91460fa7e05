"""JSON as this server reads and writes it: strictly, and digit for digit.

What a lenient parser would repair in silence is refused here, with the place where it stands: duplicate keys, NaN,
numbers too large for a double, lone surrogates, invalid UTF-8, nesting that exists to exhaust a stack.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from openjev_core.errors import Loc, RequestError

MAX_DEPTH = 64
MAX_DIGITS = 4000
SURROGATE = re.compile("[\ud800-\udfff]")


def parse_document(data: bytes) -> Any:
    """Parse a JSON document.

    Raises:
        RequestError: It is not one, or holds something that cannot be kept as it is. ``loc`` is the path in the
            document where that is known.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _invalid(f"the body is not valid UTF-8: {error.reason} at byte {error.start}") from None
    if text.startswith("\ufeff"):
        raise _invalid("the body starts with a byte order mark; send plain UTF-8")
    try:
        value = json.loads(
            text,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        raise _invalid(f"the body is not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise _too_deep(()) from None
    # Both checks walk the whole value, so they are skipped where the bytes rule the fault out.
    if text.count("[") + text.count("{") > MAX_DEPTH or "\\u" in text:
        for loc, leaf in _leaves(value):
            if len(loc) > MAX_DEPTH:
                raise _too_deep(loc[:4])
            _check_surrogates(loc, leaf)
    return value


def compact(value: Any) -> str:
    """Compact JSON: no spaces, keys in order, non-ASCII kept, integers digit for digit."""
    return _ENCODER.encode(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _invalid(msg: str) -> RequestError:
    return RequestError.at((), msg, "json_invalid")


def _too_deep(loc: Loc) -> RequestError:
    msg = f"the body is nested too deep: more than {MAX_DEPTH} arrays and objects inside one another"
    return RequestError.at(loc, msg, "json_invalid")


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


def _leaves(value: Any) -> Iterator[tuple[Loc, Any]]:
    """Every container and scalar with its path, without recursion; keys come as leaves of their own."""
    stack: list[tuple[Loc, Any]] = [((), value)]
    while stack:
        loc, node = stack.pop()
        yield loc, node
        if len(loc) > MAX_DEPTH:
            continue
        if isinstance(node, dict):
            for key, child in node.items():
                _check_surrogates(loc, key, "a key")
                stack.append(((*loc, key), child))
        elif isinstance(node, list):
            stack.extend(((*loc, index), child) for index, child in enumerate(node))


def _check_surrogates(loc: Loc, leaf: Any, what: str = "the text") -> None:
    if isinstance(leaf, str) and (found := SURROGATE.search(leaf)):
        code = f"\\u{ord(found.group()):04x}"
        raise RequestError.at(loc, f"{what} holds the lone surrogate {code}, which is no character", "string_unicode")
