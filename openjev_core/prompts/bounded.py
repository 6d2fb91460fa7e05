"""Tokenizing with a limit, so that what is far too long is refused without tokenizing all of it."""

from __future__ import annotations

from openjev_core.backends.protocol import Tokenizer

CHARACTERS_PER_TOKEN = 8
"""Text of fewer characters per permitted token is tokenized in one go: in most languages it is within the limit, or
not far beyond. Longer text is counted in pieces first."""

PIECE = 16_384
"""Characters that are counted at once."""

MARGIN = 32
"""Tokens by which a piece may count more than its share of the whole. A cut makes a token or two of what was one, and
shifts how a run of one character is divided; measured on the tokenizers of Qwen3.6 and SmolLM2, less than 4."""


class TooManyTokens(Exception):
    """A text has more tokens than permitted.

    Attributes:
        at_least: A count that it certainly reaches; above the limit.
    """

    def __init__(self, at_least: int) -> None:
        self.at_least = at_least
        super().__init__(f"at least {at_least} tokens")


def encode_within(tokenizer: Tokenizer, text: str, limit: int) -> list[int]:
    """The token ids of plain text, exactly as the tokenizer gives them in one go.

    Text that is barely too long may be returned; the caller counts what it gets.

    Raises:
        TooManyTokens: The text certainly has more than ``limit`` tokens.
    """
    if len(text) > max(PIECE, CHARACTERS_PER_TOKEN * limit):
        counted = 0
        for start in range(0, len(text), PIECE):
            counted += max(0, len(tokenizer.encode(text[start : start + PIECE])) - MARGIN)
            if counted > limit:
                raise TooManyTokens(counted)
    return tokenizer.encode(text)
