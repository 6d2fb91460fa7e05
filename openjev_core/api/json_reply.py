"""Replies that hold JSON."""

from __future__ import annotations

import json
from typing import Any

import orjson

from openjev_core.api.exchange import Header, Reply

JSON_HEADERS: tuple[Header, ...] = ((b"content-type", b"application/json"), (b"x-content-type-options", b"nosniff"))


def json_reply(status: int, value: Any, headers: tuple[Header, ...] = ()) -> Reply:
    """A reply with ``value`` as its body. Numbers in it are finite already."""
    return Reply(status, dump(value), JSON_HEADERS + headers)


def dump(value: Any) -> bytes:
    """``value`` as JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:
        # orjson writes integers of up to 64 bits; a legend echoes a client's own of up to 4,000 digits.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
