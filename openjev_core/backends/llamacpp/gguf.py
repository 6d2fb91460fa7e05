"""The header of a GGUF file: what has to be known about a model before it is loaded.

The ``gguf`` package reads it too, and brings numpy and 2 s for 49,000 tokens; this takes 30 ms, because it decodes
the few values that are asked for and steps over the rest. Layout: magic, version, counts, then key, type and value
one after another; a string is its length and its bytes, an array its element type, its length and its elements.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from openjev_core.errors import StartupError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
STRING, ARRAY = 8, 9
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
MAX_DEPTH = 4
"""Arrays in arrays in arrays are not met in models; a file of nothing else must not exhaust the stack."""

WANTED = frozenset(
    {
        "general.architecture",
        "general.name",
        "tokenizer.ggml.tokens",
        "tokenizer.ggml.token_type",
        "tokenizer.ggml.bos_token_id",
        "tokenizer.ggml.eos_token_id",
        "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id",
    }
)
WANTED_ENDING = ".context_length"

UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4
"""Token types that llama.cpp looks for in text before it tokenizes what is left."""


@frozen
class GgufHeader:
    """What a GGUF says about its model.

    Attributes:
        context_length: Tokens that the model was trained on.
        tokens: The vocabulary's texts, by id.
        special: Texts that llama.cpp may read as one token, with their ids.
    """

    context_length: int
    tokens: tuple[str, ...]
    special: Mapping[str, int]


def read_header(path: Path) -> GgufHeader:
    """Read the header of a GGUF file.

    Raises:
        StartupError: The file is not there, cannot be read, or is no GGUF of a language model; names the file.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data[:4] != MAGIC:
                raise StartupError(f"{path} is no GGUF file: it begins with {data[:4]!r}, not {MAGIC!r}")
            return _header(Cursor(data).metadata())
    except OSError as error:
        raise StartupError(f"cannot read the model file {path}: {error.strerror or error}") from None
    except (struct.error, KeyError, TypeError, ValueError, IndexError) as error:
        # ValueError: mmap of an empty file, text that is no UTF-8. StartupErrors pass.
        raise StartupError(
            f"{path} is no complete GGUF of a language model ({type(error).__name__}: {error}); "
            "download it again, or choose another"
        ) from None


class Cursor:
    """A place in a GGUF's bytes."""

    def __init__(self, data: mmap.mmap | bytes) -> None:
        self._data = data
        self._at = len(MAGIC)

    def metadata(self) -> dict[str, Any]:
        """The wanted keys' values."""
        (version,) = self._unpack("<I")
        if version not in VERSIONS:
            raise ValueError(f"GGUF version {version}; versions 2 and 3 in little-endian order are read")
        _, count = self._unpack("<QQ")
        found = {}
        for _ in range(count):
            key = self._bytes().decode("utf-8")
            (kind,) = self._unpack("<I")
            if key in WANTED or key.endswith(WANTED_ENDING):
                found[key] = self._value(kind, 0)
            else:
                self._skip(kind, 0)
        return found

    def _unpack(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return values

    def _bytes(self) -> bytes:
        (length,) = self._unpack("<Q")
        start, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise ValueError("it ends in the middle of its header")
        return self._data[start : self._at]

    def _value(self, kind: int, depth: int) -> Any:
        if kind == STRING:
            return self._bytes().decode("utf-8", "replace")
        if kind == ARRAY:
            element, count = self._array(depth)
            if element in SCALARS:
                return self._unpack(f"<{count}{SCALARS[element]}")
            return tuple(self._value(element, depth + 1) for _ in range(count))
        return self._unpack(f"<{SCALARS[kind]}")[0]

    def _skip(self, kind: int, depth: int) -> None:
        if kind == STRING:
            self._bytes()
        elif kind == ARRAY:
            element, count = self._array(depth)
            if element in SCALARS:
                self._at += count * struct.calcsize(f"<{SCALARS[element]}")
            else:
                for _ in range(count):
                    self._skip(element, depth + 1)
        else:
            self._at += struct.calcsize(f"<{SCALARS[kind]}")

    def _array(self, depth: int) -> tuple[int, int]:
        element, count = self._unpack("<IQ")
        # Every element takes a byte at least: a count beyond the file is damage, found before memory is asked for.
        if depth == MAX_DEPTH or count > len(self._data):
            raise ValueError("an array that cannot be")
        return element, count


def _header(metadata: Mapping[str, Any]) -> GgufHeader:
    tokens: Sequence[str] = metadata["tokenizer.ggml.tokens"]
    types: Sequence[int] = metadata["tokenizer.ggml.token_type"]
    special = {
        text: token
        for token, (text, kind) in enumerate(zip(tokens, types, strict=True))
        if kind in (UNKNOWN, CONTROL, USER_DEFINED)
    }
    for key, token in metadata.items():
        if key.endswith("_token_id") and token < len(tokens):
            # Models whose file types an ending as an ordinary token: llama.cpp corrects them when it loads.
            special.setdefault(tokens[token], token)
    return GgufHeader(
        context_length=int(metadata[metadata["general.architecture"] + WANTED_ENDING]),
        tokens=tuple(tokens),
        special=special,
    )
