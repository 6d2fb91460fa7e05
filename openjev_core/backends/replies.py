"""What a model server's reply says: decoded into a type, or a refusal in openjev's terms."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import orjson

from openjev_core.errors import BackendError, BackendUnavailable

WAITING_HELPS = frozenset({429, 502, 503, 504})
"""Statuses of a full queue, or of a router whose worker is gone."""
KEY_REFUSED = frozenset({401, 403})


def decode(decoder: msgspec.json.Decoder[Any], body: bytes, *, server: str, path: str) -> Any:
    """``body`` as the decoder's type.

    ``NaN`` and ``-Infinity``, which Python's own encoder writes, are taken too, so that they are judged as values.

    Args:
        decoder: Of the type.
        body: The reply's.
        server: The server's name, for messages.
        path: What was asked, for messages.

    Raises:
        BackendError: It is of another type, or no JSON; says where it differs.
    """
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise BackendError(f"{server}'s answer is not what {path} returns: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        try:
            return msgspec.convert(json.loads(body), decoder.type)
        except (ValueError, RecursionError):  # msgspec's ValidationError is a ValueError
            raise BackendError(f"{server}'s answer is not JSON: {error}") from None


def refusal(server: str, status: int, body: bytes) -> BackendError:
    """The error that a reply with this status, which is not 200, is to openjev's own client."""
    said = f"{server} answered {status}: {error_text(body)}"
    if status in WAITING_HELPS:
        return BackendUnavailable(said)
    if status in KEY_REFUSED:
        return BackendError(f"{said}. OPENJEV_BACKEND_API_KEY must be the server's --api-key")
    return BackendError(said)


def error_text(body: bytes) -> str:
    """The words of an error body."""
    try:
        return message_of(orjson.loads(body))
    except orjson.JSONDecodeError:
        return message_of(body[:300].decode("utf-8", "replace")) or "no reason given"


def message_of(error: Any) -> str:
    """The words of an error object, in whichever of its shapes, cut to a line."""
    while isinstance(error, dict):
        error = error.get("message") or error.get("error") or error.get("detail") or "no reason given"
    return " ".join(str(error).split())[:300]
