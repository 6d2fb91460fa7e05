"""Plain text to token ids: within a limit, and not twice within a while.

A state comes again when more is asked about it, and what a template writes around it comes with every state. What is
remembered is exact, since the key is the text itself, and belongs to one tokenizer.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from openjev_core.backends.protocol import Tokenizer
from openjev_core.prompts.alphabet import Alphabet
from openjev_core.recent import ENTRY_BYTES, Recent

CHARACTERS_PER_TOKEN = 8
"""Text of fewer characters per permitted token is tokenized in one go: in most languages it is within the limit, or
not far beyond. Longer text is counted in pieces first."""

PIECE = 16_384
"""Characters that are counted at once."""

MARGIN = 32
"""Tokens by which a piece may count more than its share of the whole. A cut makes a token or two of what was one, and
shifts how a run of one character is divided; measured on the tokenizers of Qwen3.6 and SmolLM2, less than 4."""

TOKEN_BYTES = 36
"""Upper bound on what one id in a tuple takes: the pointer and the number."""

CHARACTER_BYTES = 4
"""Upper bound on what one character of a text takes."""

CAPACITY = 4 * 1024 * 1024
"""Bytes that are remembered: some 80,000 tokens of English."""


class TooManyTokens(Exception):
    """A text has more tokens than permitted.

    Attributes:
        at_least: A count that it certainly reaches; above the limit.
    """

    def __init__(self, at_least: int) -> None:
        self.at_least = at_least
        super().__init__(f"at least {at_least} tokens")


@frozen
class PlainEncoder:
    """Encodes text in which nothing is a control token. Safe to use from several threads.

    Attributes:
        tokenizer: Gives the ids.
        alphabet: What it can spell.
    """

    tokenizer: Tokenizer
    alphabet: Alphabet
    _known: Recent[str, tuple[int, ...]] = field(factory=lambda: Recent(CAPACITY), repr=False)

    def encode(self, text: str, limit: int | None = None) -> tuple[int, ...]:
        """The token ids of ``text``.

        Args:
            text: The text.
            limit: Tokens beyond which it need not be tokenized to its end. One that is barely too long may be
                returned; the caller counts what it gets.

        Raises:
            NoToken: It holds a character for which the tokenizer has no token.
            TooManyTokens: It certainly has more than ``limit`` tokens.
        """
        known = self._known.get(text)
        if known is not None:
            return known
        self.alphabet.check(text)
        ids = tuple(self.tokenizer.encode(text) if limit is None else encode_within(self.tokenizer, text, limit))
        self._known.keep(text, ids, ENTRY_BYTES + CHARACTER_BYTES * len(text) + TOKEN_BYTES * len(ids))
        return ids


def encode_within(tokenizer: Tokenizer, text: str, limit: int) -> list[int]:
    """The token ids of plain text, exactly as the tokenizer gives them in one go.

    Text that is barely too long may be returned.

    Raises:
        TooManyTokens: The text certainly has more than ``limit`` tokens.
    """
    check_length(tokenizer, [text], limit)
    return tokenizer.encode(text)


def check_length(tokenizer: Tokenizer, texts: Iterable[str], limit: int) -> None:
    """Refuse texts that are far too long together, without tokenizing all of them.

    Raises:
        TooManyTokens: They certainly have more than ``limit`` tokens.
    """
    held = list(texts)
    if sum(map(len, held)) <= max(PIECE, CHARACTERS_PER_TOKEN * limit):
        return
    counted = 0
    for text in held:
        for start in range(0, len(text), PIECE):
            counted += max(0, len(tokenizer.encode(text[start : start + PIECE])) - MARGIN)
            if counted > limit:
                raise TooManyTokens(counted)
