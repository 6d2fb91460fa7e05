"""The request that ``ask`` is given: a JSON document, or a state with questions as flags."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from openjev_core.errors import RequestError
from openjev_core.json_document import parse_document

STANDARD_INPUT = "-"


def document_from(source: str) -> Any:
    """The JSON document in a file or on standard input.

    Raises:
        RequestError: It cannot be read, or is no JSON.
    """
    return parse_document(content_of(source), "the body" if source == STANDARD_INPUT else source)


def state_from(source: str) -> Any:
    """The state in a file or on standard input: JSON when the file's name ends in ``.json``, else text as it stands.

    Raises:
        RequestError: It cannot be read, is no JSON although its name says so, or is no UTF-8.
    """
    content = content_of(source, "; --state takes a file's name, and the text itself with - by standard input")
    if source != STANDARD_INPUT and Path(source).suffix.lower() == ".json":
        try:
            return parse_document(content)
        except RequestError as error:
            raise error.under(source) from error
    try:
        # A byte order mark tells the encoding and is no part of the text.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"the text is not valid UTF-8: {error.reason} at byte {error.start}"
        raise RequestError.at((source,), msg) from None


def content_of(source: str, hint: str = "") -> bytes:
    """The bytes of a file, or of standard input for ``-``.

    Args:
        source: The file's name.
        hint: Said behind the reason why there is no such file.

    Raises:
        RequestError: It cannot be read.
    """
    try:
        if source != STANDARD_INPUT:
            return Path(source).read_bytes()
        # Python has no stream where the process was started with standard input closed.
        if sys.stdin is None:
            raise RequestError.at(("standard input",), "cannot be read: it is closed")
        return sys.stdin.buffer.read()
    except (OSError, ValueError) as error:  # ValueError: a name that holds NUL
        place = "standard input" if source == STANDARD_INPUT else source or "''"
        reason = getattr(error, "strerror", None) or str(error)
        raise RequestError.at((place,), f"cannot be read: {reason}{hint}") from None
