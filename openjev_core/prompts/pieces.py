"""Tokenizing ASCII text from a memory of its pieces.

A byte-pair tokenizer first cuts a text into pieces, roughly its words, by a regular expression, and then finds each
piece's ids without looking at its neighbours. In ASCII the expression is one that Python's own engine can run, and most
pieces of a text have been seen before: cutting and looking up takes a tenth of what the ``tokenizers`` library takes to
do all of it again. Only the ids that the library itself gave for a piece are ever used, and a tokenizer whose pieces
are not understood exactly has no such memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, groupby, islice, product
from typing import Any, Protocol

CAPACITY = 65_536
"""Pieces that are known at most; some 12 MB. When there are more, learning starts over."""

LONGEST_PIECE = 48
"""Characters of a piece that is worth knowing: longer ones do not come again."""

LEARNED_AT_ONCE = 256
"""New pieces that are learned from one text; one that has more is tokenized whole by the library as well."""

CLASSES = (r"\p{L}", "A-Za-z"), (r"\p{N}", "0-9"), (r"\p{M}", "")
"""Unicode's letters, numbers and marks, and which ASCII characters are among them."""

CLASS = re.compile(r"\[[^\]]*\]")

ESCAPED = re.compile(r"\\[^bBAGzZ]")
"""An escaped character that is no anchor."""

NO_PLAIN_PART = re.compile(r"\((?!\?:|\?i:)|[\^$]|\\")
"""What, outside of classes and escapes, is no plain group, or may look at the text around a piece."""

LINE = re.compile(r"(?<=[!-~]\n)(?=[!-~])")
"""Between two lines, where the one ends and the other begins with a visible ASCII character. No piece reaches across,
and what follows does not change how white space is cut, since there is just the one character."""

PROBED = "aB'sl 7\n\r\t.-(\u00e9\u0301\u4e2d\u3000\x85"
"""One or two characters of every kind that the expressions tell apart."""


class Library(Protocol):
    """What is used of the ``tokenizers`` library's tokenizer."""

    def encode_batch_fast(self, texts: list[str], *, add_special_tokens: bool) -> Sequence[Any]:
        """An encoding of each text, with its ``ids``."""
        ...


class Pieces:
    """Token ids by piece. Safe to use from several threads: a lost race is one more call of the library.

    Args:
        cut: Cuts ASCII text into pieces.
        library: Tokenizes what is not known.
    """

    def __init__(self, cut: Callable[[str], list[str]], library: Library) -> None:
        self._cut = cut
        self._library = library
        self._known: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str) -> list[int]:
        """The token ids of ``text``, exactly as the library gives them."""
        if text.isascii():
            return self._ascii(text)
        lines = LINE.split(text)
        if len(lines) == 1:
            return self._whole(text)
        ids: list[int] = []
        for is_ascii, group in groupby(lines, str.isascii):
            run = "".join(group)
            ids.extend(self._ascii(run) if is_ascii else self._whole(run))
        return ids

    def _ascii(self, text: str) -> list[int]:
        pieces = self._cut(text)
        try:
            return self._joined(pieces)
        except KeyError:
            self._learn({piece for piece in pieces if piece not in self._known and len(piece) <= LONGEST_PIECE})
        try:
            return self._joined(pieces)
        except KeyError:  # pieces that were too many or too long to be learned
            return self._whole(text)

    def _joined(self, pieces: list[str]) -> list[int]:
        return list(chain.from_iterable(map(self._known.__getitem__, pieces)))

    def _learn(self, new: Iterable[str]) -> None:
        pieces = list(islice(new, LEARNED_AT_ONCE))
        if len(self._known) + len(pieces) > CAPACITY:
            self._known = {}
        encodings = self._library.encode_batch_fast(pieces, add_special_tokens=False)
        for piece, encoding in zip(pieces, encodings, strict=True):
            self._known[piece] = tuple(encoding.ids)

    def _whole(self, text: str) -> list[int]:
        ids: list[int] = self._library.encode_batch_fast([text], add_special_tokens=False)[0].ids
        return ids


def pieces_of(definition: Mapping[str, Any], library: Library) -> Pieces | None:
    """A memory of a tokenizer's pieces.

    Args:
        definition: The content of its ``tokenizer.json``.
        library: The tokenizer itself, without its control tokens.

    Returns:
        ``None`` where pieces are found in another way than by an expression, or do not stand for themselves.
    """
    expression = expression_of(definition)
    cut = None if expression is None else cutter(expression)
    if cut is None:
        return None
    return Pieces(cut, library) if agree(Pieces(cut, library), cut, library) else None


def expression_of(definition: Mapping[str, Any]) -> str | None:
    """The expression that a tokenizer cuts its text with; ``None`` where that is not all it does."""
    model, normalizer = definition.get("model") or {}, definition.get("normalizer") or {}
    if model.get("type") != "BPE" or model.get("dropout"):
        return None
    # Normalizing to composed forms leaves ASCII as it is.
    if normalizer not in ({}, {"type": "Sequence", "normalizers": []}, {"type": "NFC"}):
        return None
    match definition.get("pre_tokenizer"):
        case {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}:
            return BYTE_LEVEL
        case {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": str(expression)}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
            ],
        }:
            return expression
    return None


BYTE_LEVEL = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""GPT-2's, which the library's ``ByteLevel`` has built in."""


def cutter(expression: str) -> Callable[[str], list[str]] | None:
    """A function that cuts ASCII text as ``expression`` does; ``None`` where Python's engine cannot."""

    def narrowed(within: re.Match[str]) -> str:
        written = within.group()
        for unicode, ascii_ in CLASSES:
            written = written.replace(unicode, ascii_)
        return written

    translated = CLASS.sub(narrowed, expression)
    for unicode, ascii_ in CLASSES:
        translated = translated.replace(unicode, f"[{ascii_}]" if ascii_ else "(?!)")
    # A piece is cut by itself when its ids are learned, so how it is cut must not depend on what stands around it. One
    # character behind a match decides about its end alone, which is the piece's end; more than that may part a piece.
    rest = CLASS.sub("", translated).replace(r"(?!\S)", "").replace("(?!)", "")
    if r"\p" in translated or NO_PLAIN_PART.search(ESCAPED.sub("", rest)):
        return None
    try:
        return re.compile(translated, re.ASCII).findall
    except re.error:
        return None


def agree(pieces: Pieces, cut: Callable[[str], list[str]], library: Library) -> bool:
    """Whether a memory gives what the library gives, on every sequence of three of the characters that it tells apart.

    Every pair of ASCII characters is tried too, nothing may be lost in cutting, and no piece may reach across a
    :data:`LINE`.
    """
    if any(cut(f"{last}\n{first}")[-1:] != [first] for last, first in product(map(chr, range(33, 127)), repeat=2)):
        return False
    texts = [
        "".join(chain.from_iterable(product(probed, repeat=3))) for probed in (PROBED, filter(str.isascii, PROBED))
    ]
    texts.extend(first + "".join(chr(second) + first for second in range(128)) for first in map(chr, range(128)))
    wanted = library.encode_batch_fast(texts, add_special_tokens=False)
    return all(
        pieces.encode(text) == encoding.ids and (not text.isascii() or "".join(cut(text)) == text)
        for text, encoding in zip(texts, wanted, strict=True)
    )
