"""The header of a GGUF file: what has to be known about a model before it is loaded.

The ``gguf`` package reads it too, and needs numpy and 2 s for 49,000 tokens. This takes 30 ms, because it decodes the
few values that are needed and steps over the rest. Layout: magic, version, counts, then key, type and value one after
another; a string is its length and its bytes, an array its element type, its length and its elements.

A file may claim anything, and a sparse one of a terabyte takes no space on a disk. So what is read one by one is
counted, and a file that holds more than any model does is refused.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from openjev_core.errors import StartupError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
STRING, ARRAY = 8, 9
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
MAX_DEPTH = 4
"""Levels of arrays in arrays. Models have one, rarely two."""
MAX_KEYS = 65_536
"""Models have some forty keys."""
MAX_ELEMENTS = 4 * 2**20
"""Elements that are read one by one, in all arrays together. Gemma's vocabulary and merges have 1.3 million."""
MAX_TEXT = 64 * 2**20
"""Bytes of all texts that are read. Gemma's vocabulary has 3 MB."""

TOKENS, TYPES, ARCHITECTURE = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "general.architecture"
ENDINGS = tuple(f"tokenizer.ggml.{name}_token_id" for name in ("bos", "eos", "eot", "eom"))
WANTED = frozenset({ARCHITECTURE, TOKENS, TYPES, *ENDINGS})
WANTED_ENDING = ".context_length"

WORDS: Mapping[type, str] = {str: "text", int: "integer", tuple: "array"}

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
        StartupError: The file is not there, cannot be read, or is no GGUF of a language model; names file and field.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data[:4] != MAGIC:
                raise StartupError(f"{path} is no GGUF file: it begins with {data[:4]!r}, not {MAGIC!r}")
            return _header(Cursor(data).metadata())
    except OSError as error:
        raise StartupError(f"cannot read the model file {path}: {error.strerror or error}") from None
    except ValueError as error:  # also mmap's, of an empty file
        raise StartupError(
            f"{path} is no complete GGUF of a language model: {error}; download it again, or choose another"
        ) from None


class Cursor:
    """A place in a GGUF's bytes, and what was read before it.

    Attributes:
        elements: Elements of arrays that were read one by one.
        text: Bytes of texts that were read.
    """

    def __init__(self, data: mmap.mmap | bytes) -> None:
        self._data = data
        self._at = len(MAGIC)
        self.elements = 0
        self.text = 0

    def metadata(self) -> dict[str, Any]:
        """The wanted keys' values.

        Raises:
            ValueError: The bytes are no header; says which field is wrong.
        """
        (version,) = self._unpack("<I")
        if version not in VERSIONS:
            raise ValueError(f"GGUF version {version}; versions 2 and 3 in little-endian order are read")
        _, count = self._unpack("<QQ")
        if count > MAX_KEYS:
            raise ValueError(f"it claims {count} fields, and at most {MAX_KEYS} are read")
        found = {}
        for number in range(1, count + 1):
            key = None
            try:
                key = self._text("strict")
                (kind,) = self._unpack("<I")
                if key in WANTED or key.endswith(WANTED_ENDING):
                    found[key] = self._value(kind, 0)
                else:
                    self._skip(kind, 0)
            except ValueError as error:
                name = "its name" if key is None else repr(key[:80])
                raise ValueError(f"field {number} of {count}, {name}: {error}") from None
        return found

    def _unpack(self, layout: str) -> tuple[Any, ...]:
        start = self._at
        self._advance(struct.calcsize(layout))
        return struct.unpack_from(layout, self._data, start)

    def _advance(self, size: int) -> None:
        self._at += size
        if self._at > len(self._data):
            raise ValueError("it ends in the middle of its header")

    def _text(self, errors: str) -> str:
        (length,) = self._unpack("<Q")
        self.text += length
        if self.text > MAX_TEXT:
            raise ValueError(f"more than {MAX_TEXT} bytes of text")
        start = self._at
        self._advance(length)
        return self._data[start : self._at].decode("utf-8", errors)

    def _value(self, kind: int, depth: int) -> Any:
        if kind == STRING:
            return self._text("replace")
        if kind == ARRAY:
            element, count = self._array(depth)
            self._count(count)
            if element in SCALARS:
                return self._unpack(f"<{count}{SCALARS[element]}")
            return tuple(self._value(element, depth + 1) for _ in range(count))
        return self._unpack(f"<{layout_of(kind)}")[0]

    def _skip(self, kind: int, depth: int) -> None:
        if kind == STRING:
            (length,) = self._unpack("<Q")
            self._advance(length)
        elif kind == ARRAY:
            element, count = self._array(depth)
            if element in SCALARS:
                self._advance(count * struct.calcsize(f"<{SCALARS[element]}"))
            else:
                self._count(count)
                for _ in range(count):
                    self._skip(element, depth + 1)
        else:
            self._advance(struct.calcsize(f"<{layout_of(kind)}"))

    def _array(self, depth: int) -> tuple[int, int]:
        element, count = self._unpack("<IQ")
        if depth == MAX_DEPTH:
            raise ValueError(f"arrays in arrays, more than {MAX_DEPTH} deep")
        return element, count

    def _count(self, elements: int) -> None:
        self.elements += elements
        if self.elements > MAX_ELEMENTS:
            raise ValueError(f"an array of {elements} elements; at most {MAX_ELEMENTS} are read")


def layout_of(kind: int) -> str:
    """The :mod:`struct` layout of a scalar type."""
    if kind not in SCALARS:
        raise ValueError(f"a value of the unknown type {kind}")
    return SCALARS[kind]


def _header(metadata: Mapping[str, Any]) -> GgufHeader:
    architecture: str = _field(metadata, ARCHITECTURE, str)
    context_length: int = _field(metadata, architecture + WANTED_ENDING, int)
    if context_length < 1:
        raise ValueError(f"{architecture}{WANTED_ENDING} is {context_length}")
    tokens: tuple[str, ...] = _field(metadata, TOKENS, tuple)
    types: tuple[int, ...] = _field(metadata, TYPES, tuple)
    if not all(isinstance(token, str) for token in tokens):
        raise ValueError(f"{TOKENS} is no array of texts")
    if len(types) != len(tokens):
        raise ValueError(f"{TYPES} has {len(types)} elements, and {TOKENS} {len(tokens)}")
    special = {
        text: token
        for token, (text, kind) in enumerate(zip(tokens, types, strict=True))
        if kind in (UNKNOWN, CONTROL, USER_DEFINED)
    }
    for name in ENDINGS:
        token = _field(metadata, name, int) if name in metadata else len(tokens)
        if 0 <= token < len(tokens):
            # Models whose file types an ending as an ordinary token: llama.cpp corrects them when it loads.
            special.setdefault(tokens[token], token)
    return GgufHeader(context_length=context_length, tokens=tokens, special=special)


def _field(metadata: Mapping[str, Any], name: str, kind: type) -> Any:
    """The value of a field, which is there and of this very type: a truth value is no integer here."""
    if name not in metadata:
        raise ValueError(f"it has no {name}")
    if type(metadata[name]) is not kind:
        raise ValueError(f"{name} is no {WORDS[kind]}")
    return metadata[name]
