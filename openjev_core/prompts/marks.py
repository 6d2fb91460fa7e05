"""Keeping what a client wrote apart from what a template wrote.

A chat template pastes user text between control tokens. Wherever user text spells a control token, or could complete
one together with the text around it, an invisible mark is put into it before rendering. Afterwards the rendered
text is cut at the control tokens that are whole, which only the template can have written, and the marks are taken
out of the plain text between them. So user text can never open or close a turn, and a template that looks for
``</think>`` in a message does not find one that is mere data.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import field, frozen

from openjev_core.errors import StartupError

WORDS = frozenset({
    "role", "system", "user", "assistant", "tool", "content", "type", "text", "name", "id", "function", "arguments",
    "parameters", "tool_calls", "tool_call_id", "reasoning", "reasoning_content", "thinking",
})  # fmt: skip
"""What templates look up or compare with: keys of messages, parts and tool calls, and roles and types. They are part of
some control tokens (``<|user|>``), and marked they would not be found."""

LONGEST = 256
"""Upper bound on the characters of a control token. Those of real models have some 30."""

MIDDLE = str.maketrans({digit: chr(0xFDD2 + value) for value, digit in enumerate("0123456789abcdef")})


def mark_absent_from(texts: Iterable[str]) -> str:
    """A mark that none of ``texts`` holds, so that taking it out again takes out nothing else.

    It is made of noncharacters, which no text in any language holds and no control token either. The first and the
    last stand at no other place in it, so it cannot overlap itself; those between them cannot be guessed. It is short
    whatever the texts are.
    """
    held = list(texts)
    while True:
        mark = f"\ufdd0{secrets.token_hex(4).translate(MIDDLE)}\ufdd1"
        if not any(mark in text for text in held):
            return mark


def strings_in(value: Any) -> Iterator[str]:
    """Every string in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, child in value.items():
            yield key
            yield from strings_in(child)
    elif isinstance(value, list):
        for child in value:
            yield from strings_in(child)


@frozen
class ControlTokens:
    """The control tokens of one tokenizer, ready to be looked for.

    Attributes:
        ids: Text to id.

    Raises:
        StartupError: One of them is a single character, into which no mark fits, or longer than :data:`LONGEST`.
    """

    ids: Mapping[str, int]
    _beginning: re.Pattern[str] = field(init=False, repr=False)
    _lengths: Mapping[str, tuple[int, ...]] = field(init=False, repr=False)
    _heads: frozenset[str] = field(init=False, repr=False)
    _tails: frozenset[str] = field(init=False, repr=False)
    _inner: str = field(init=False, repr=False)
    _longest: int = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        # Of two tokens that begin at one place, the model's own front end takes the longer.
        texts = sorted(self.ids, key=len, reverse=True)
        if texts and len(texts[-1]) < 2:  # noqa: PLR2004 - a mark goes between two characters
            raise StartupError(
                f"the tokenizer has a control token of one character, {texts[-1]!r}, which cannot be kept apart from "
                "the same character in a user's text; choose another model"
            )
        if texts and len(texts[0]) > LONGEST:
            raise StartupError(
                f"the tokenizer has a control token of {len(texts[0])} characters, {texts[0][:20]!r}...; at most "
                f"{LONGEST} are accepted; choose another model"
            )
        lengths: dict[str, dict[int, None]] = {}
        for text in texts:
            lengths.setdefault(text[:2], {})[len(text)] = None
        firsts = "".join(map(re.escape, dict.fromkeys(text[0] for text in texts)))
        object.__setattr__(self, "_beginning", re.compile(f"[{firsts}]" if firsts else "(?!)"))
        object.__setattr__(self, "_lengths", {pair: tuple(sizes) for pair, sizes in lengths.items()})
        object.__setattr__(self, "_heads", frozenset(t[:size] for t in texts for size in range(1, len(t))))
        object.__setattr__(self, "_tails", frozenset(t[size:] for t in texts for size in range(1, len(t))))
        object.__setattr__(self, "_inner", "\0".join(text[1:-1] for text in texts))
        object.__setattr__(self, "_longest", len(texts[0]) if texts else 0)

    def spelled(self, text: str) -> Iterator[tuple[int, str]]:
        """Every place at which ``text`` spells a control token, with the longest that it spells there.

        Places may overlap. One expression of all the tokens would be simpler, but some models have 6,000 that begin
        alike, and Python's engine would try each of them at each place.
        """
        for found in self._beginning.finditer(text):
            at = found.start()
            for length in self._lengths.get(text[at : at + 2], ()):
                if (token := text[at : at + length]) in self.ids:
                    yield at, token
                    break

    def protect(self, text: str, mark: str) -> str:
        """``text`` with a mark inside every control token that it spells, and where its ends could complete one."""
        pieces, start = [], 0
        for at, _ in self.spelled(text):
            pieces.append(text[start : at + 1])
            start = at + 1
        marked = mark.join([*pieces, text[start:]])
        sizes = range(1, min(len(text), self._longest) + 1)
        if (0 < len(text) < self._longest and text in self._inner) or any(text[:size] in self._tails for size in sizes):
            marked = mark + marked
        if any(text[-size:] in self._heads for size in sizes):
            marked += mark
        return marked

    def protect_value(self, value: Any, mark: str, *, data: bool = False) -> Any:
        """A JSON value with every string in it protected, keys included.

        Args:
            value: A message, or a part of one.
            mark: What to protect with.
            data: The value is a tool call's arguments or the like: templates look up no :data:`WORDS` in it.
        """
        if isinstance(value, str):
            known = not data and value in WORDS and next(self.spelled(value), None) is None
            return value if known else self.protect(value, mark)
        if isinstance(value, dict):
            return {
                self.protect_value(key, mark, data=data): self.protect_value(
                    child, mark, data=data or key == "arguments"
                )
                for key, child in value.items()
            }
        if isinstance(value, list):
            return [self.protect_value(child, mark, data=data) for child in value]
        return value

    def cut(self, rendered: str, mark: str) -> Iterator[str | int]:
        """Cut a rendered text into plain texts, without their marks, and the ids of control tokens."""
        position = 0
        for at, token in self.spelled(rendered):
            if at < position:  # inside of the one before
                continue
            if plain := rendered[position:at].replace(mark, ""):
                yield plain
            yield self.ids[token]
            position = at + len(token)
        if plain := rendered[position:].replace(mark, ""):
            yield plain
