"""Keeping what a client wrote apart from what a template wrote.

A chat template pastes user text between control tokens. Wherever user text spells a control token, or could complete
one together with the template's own text, an invisible mark is put into it before rendering. Afterwards the rendered
text is cut at the control tokens that are whole, which only the template can have written, and the marks are taken
out of the plain text between them. So user text can never open or close a turn, and a template that looks for
``</think>`` in a message does not find one that is mere data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import field, frozen

MARK = "\ufdd0"
"""A noncharacter: no text in any language holds it. Where a client sends it all the same, a longer mark is used."""


def mark_absent_from(texts: Iterable[str]) -> str:
    """A mark that none of ``texts`` holds, so that taking it out again takes out nothing else."""
    longest = max((_longest_run(text) for text in texts if MARK in text), default=0)
    return MARK * (longest + 1)


def _longest_run(text: str) -> int:
    return max(len(run) for run in re.findall(f"{MARK}+", text))


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
    """

    ids: Mapping[str, int]
    _whole: re.Pattern[str] = field(init=False, repr=False)
    _head: re.Pattern[str] = field(init=False, repr=False)
    _tail: re.Pattern[str] = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        # Longest first: of two tokens that begin at one place, the model's own front end takes the longer.
        texts = sorted(self.ids, key=len, reverse=True)
        heads = {text[:size] for text in texts for size in range(1, len(text))}
        tails = {text[size:] for text in texts for size in range(1, len(text))}
        object.__setattr__(self, "_whole", _any_of(texts))
        object.__setattr__(self, "_head", re.compile(f"(?:{_any_of(heads).pattern})\\Z"))
        object.__setattr__(self, "_tail", _any_of(tails))

    def protect(self, text: str, mark: str) -> str:
        """``text`` with a mark inside every control token that it spells or could complete at either end."""
        marked = self._whole.sub(lambda found: found.group()[0] + mark + found.group()[1:], text)
        if self._tail.match(marked):
            marked = mark + marked
        if self._head.search(marked, max(0, len(marked) - 64)):
            marked += mark
        return marked

    def protect_value(self, value: Any, mark: str) -> Any:
        """A JSON value with every string in it protected, keys included."""
        if isinstance(value, str):
            return self.protect(value, mark)
        if isinstance(value, dict):
            return {self.protect(key, mark): self.protect_value(child, mark) for key, child in value.items()}
        if isinstance(value, list):
            return [self.protect_value(child, mark) for child in value]
        return value

    def cut(self, rendered: str, mark: str) -> Iterator[str | int]:
        """Cut a rendered text into plain texts, without their marks, and the ids of control tokens."""
        position = 0
        for found in self._whole.finditer(rendered):
            if plain := rendered[position : found.start()].replace(mark, ""):
                yield plain
            yield self.ids[found.group()]
            position = found.end()
        if plain := rendered[position:].replace(mark, ""):
            yield plain


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    alternatives = "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True))
    return re.compile(alternatives or r"(?!)")
