"""Token ids of texts that were encoded lately.

Questions come again and again with ever new states, and a state comes again when more is asked about it: neither is
tokenized twice within a while. What is kept is exact, since the key is the text itself; it belongs to one tokenizer,
and it is bounded by its own size.
"""

from __future__ import annotations

from openjev_core.recent import Recent

TOKEN_BYTES = 36
"""What one id in a tuple takes: the pointer and the number."""

CHARACTER_BYTES = 4
"""The most that one character of a text takes."""

CAPACITY = 4 * 1024 * 1024
"""Bytes that are kept: some 80,000 tokens of English; the least recently used texts go first."""


class Encoded:
    """A bounded memory from text to token ids. Safe to use from several threads.

    Args:
        capacity: Bytes.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._ids: Recent[str, tuple[int, ...]] = Recent(capacity)

    def get(self, text: str) -> tuple[int, ...] | None:
        """The ids of ``text``, if they are known."""
        return self._ids.get(text)

    def keep(self, text: str, ids: tuple[int, ...]) -> None:
        """Know the ids of ``text`` from now on, unless they alone are more than is kept."""
        self._ids.keep(text, ids, size_of(text, ids))


def size_of(text: str, ids: tuple[int, ...]) -> int:
    """Bytes that a text and its ids take, or somewhat less than it says."""
    return CHARACTER_BYTES * len(text) + TOKEN_BYTES * len(ids)
