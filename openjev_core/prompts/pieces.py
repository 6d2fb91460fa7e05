"""Tokenizing text from a memory of its pieces.

A byte-pair tokenizer first cuts a text into pieces, roughly its words, by a regular expression, and then finds each
piece's ids without looking at its neighbours. In ASCII the expression is one that Python's own engine can run, and most
pieces of a text have been seen before: cutting and looking up takes a tenth of what the ``tokenizers`` library takes to
do all of it again. Runs of other words, between words in ASCII, are taken for pieces whole. Only the ids that the
library itself gave for a piece are ever used, and a tokenizer whose pieces are not understood exactly has no such
memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, groupby, islice, product
from typing import Any, Protocol

CAPACITY = 16 * 1024 * 1024
"""Upper bound on the bytes that known pieces take: some 65,000 of English. Beyond it, learning starts over."""

PIECE_BYTES, CHARACTER_BYTES, TOKEN_BYTES = 200, 4, 36
"""Upper bounds on what a piece takes beside its text and ids, and on what a character and an id of it take."""

LONGEST_PIECE = 48
"""Characters of a piece that is worth knowing: longer ones do not come again."""

ASKED_FOR = 1.25
"""The time that learning a piece takes, relative to what the library takes for a piece within a text. A text in
which more than four pieces in five are new is tokenized whole."""

LEARNED_BESIDE = 64
"""Pieces that are learned from such a text."""

WRITTEN = {character: 256 + character for character in range(33)} | {127: 289}
"""How a byte-level vocabulary writes the ASCII characters that are not visible: GPT-2's ``bytes_to_unicode``."""

CLASSES = (r"\p{L}", "A-Za-z"), (r"\p{N}", "0-9"), (r"\p{M}", "")
"""Unicode's letters, numbers and marks, and which ASCII characters are among them."""

CLASS = re.compile(r"\[[^\]]*\]")

ESCAPED = re.compile(r"\\[^bBAGzZ]")
"""An escaped character that is no anchor."""

NO_PLAIN_PART = re.compile(r"\((?!\?:|\?i:)|[\^$]|\\")
"""Parts of an expression (no classes or escapes) that are no plain group or look at the text around a piece."""

WORD = re.compile(r"(?<=[!-~])(?= [A-Za-z])")
"""Before a word: between a visible ASCII character and the one space before an ASCII letter. No piece reaches across,
and how either side is cut does not depend on the other."""

PROBED = "aB'sl 7\n\r\t.-(\u00e9\u0301\u4e2d\u3000\x85"
"""One or two characters of every kind that the expressions tell apart."""


class Library(Protocol):
    """What is used of the ``tokenizers`` library's tokenizer."""

    @property
    def model(self) -> Any:
        """What finds the ids of a piece: its ``tokenize`` takes one as the vocabulary writes it."""
        ...

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
        self._model = library.model
        self._known: dict[str, tuple[int, ...]] = {}
        self._held = 0

    def encode(self, text: str) -> list[int]:
        """The token ids of ``text``, exactly as the library gives them."""
        known, pieces = self._known, self._cut(text) if text.isascii() else self._parts(text)
        try:
            return list(chain.from_iterable(map(known.__getitem__, pieces)))
        except KeyError:
            new = {piece for piece in pieces if piece not in known}
        if len(new) * ASKED_FOR > len(pieces):
            self._learn(islice((piece for piece in new if len(piece) <= LONGEST_PIECE), LEARNED_BESIDE))
            return self._whole(text)
        learned = self._learn(new)
        try:
            return list(chain.from_iterable(map(known.__getitem__, pieces)))
        except KeyError:  # some were too long to be kept, or `known` is what was kept before learning started over
            return list(chain.from_iterable([known[one] if one in known else learned[one] for one in pieces]))

    def _parts(self, text: str) -> list[str]:
        """The pieces of words in ASCII, and each run of other words as one."""
        parts: list[str] = []
        for is_ascii, words in groupby(WORD.split(text), str.isascii):
            run = "".join(words)
            parts.extend(self._cut(run) if is_ascii else (run,))
        return parts

    def _learn(self, new: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """The ids of ``new`` pieces, kept from now on where they may come again."""
        learned: dict[str, tuple[int, ...]] = {}
        others = []
        for piece in new:
            # The model, unlike the library, holds up every other thread: no matter for a word, but for a long piece.
            if piece.isascii() and len(piece) <= LONGEST_PIECE:
                learned[piece] = tuple([token.id for token in self._model.tokenize(piece.translate(WRITTEN))])
            else:
                others.append(piece)
        if others:
            encodings = self._library.encode_batch_fast(others, add_special_tokens=False)
            learned.update((piece, tuple(encoding.ids)) for piece, encoding in zip(others, encodings, strict=True))
        short = {piece: ids for piece, ids in learned.items() if len(piece) <= LONGEST_PIECE}
        size = sum(
            [PIECE_BYTES + CHARACTER_BYTES * len(piece) + TOKEN_BYTES * len(ids) for piece, ids in short.items()]
        )
        if self._held + size > CAPACITY:
            self._known, self._held = {}, 0  # not emptied: another thread may be reading it
        if size <= CAPACITY:
            self._known.update(short)
            self._held += size
        return learned

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

    Every pair of ASCII characters is tried too, nothing may be lost in cutting, and no piece may reach across the
    beginning of a :data:`WORD`.
    """
    visible, letters = map(chr, range(33, 127)), (letter for letter in map(chr, range(128)) if letter.isalpha())
    for last, first in product(visible, letters):
        if cut(f"{last} {first}") != [*cut(last), *cut(f" {first}")]:
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
