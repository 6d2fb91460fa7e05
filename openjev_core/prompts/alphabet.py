"""Which characters a model can be shown at all.

A byte-level tokenizer reads text as bytes, and some lack a token for a few of them: SmolLM2's for six control
characters and for Unicode's empty planes. What is done with a character of these depends on who does it, and all of it
is wrong here: llama.cpp leaves it out, and the ``tokenizers`` library puts a control token in its place, which no text
may ever become.
"""

from __future__ import annotations

from attrs import frozen

from openjev_core.backends.protocol import Tokenizer

SEPARATOR = "0"
"""Between the characters that are tried; found in no control token, and it combines with none of them."""

REPLACEMENT = "\ufffd"
"""What is shown for bytes that are no character."""

SURROGATES, LAST_PLANE = 0xED, 0xF4
"""First bytes behind which only a part of the second ones makes a character."""


class NoToken(Exception):
    """A text holds a character for which the model has no token.

    Attributes:
        character: The first such character.
    """

    def __init__(self, character: str) -> None:
        self.character = character
        super().__init__(
            f"the model has no token for the character U+{ord(character):04X}, so it cannot be shown; leave it out"
        )


@frozen
class Alphabet:
    """What a tokenizer can spell.

    Attributes:
        missing: The bytes of UTF-8 for which it has no token.
    """

    missing: bytes = b""

    def check(self, text: str) -> None:
        """Refuse text that it cannot spell whole.

        Raises:
            NoToken: There is such a character.
        """
        if not self.missing:
            return
        written = text.encode()
        if len(written) != len(written.translate(None, self.missing)):
            raise NoToken(next(char for char in text if not set(self.missing).isdisjoint(char.encode())))


def alphabet_of(tokenizer: Tokenizer) -> Alphabet:
    """Find out by trying characters that hold every byte there is in UTF-8, in two calls of the tokenizer."""
    tried = [char for char in probes() if char != SEPARATOR]
    shown = tokenizer.decode(tokenizer.encode(SEPARATOR.join(tried))).split(SEPARATOR)
    if shown == tried:
        return Alphabet()
    if len(shown) != len(tried):  # something took a separator with it
        shown = [tokenizer.decode(tokenizer.encode(char)) for char in tried]
    control = tuple(tokenizer.control_tokens)
    spelled: set[int] = set()
    for char, found in zip(tried, shown, strict=True):
        # A tokenizer that normalizes shows another character: nothing is lost.
        if found and REPLACEMENT not in found and not any(token in found for token in control):
            spelled.update(char.encode())
    return Alphabet(bytes({byte for char in tried for byte in char.encode()} - spelled))


def probes() -> list[str]:
    """Characters that hold every byte of UTF-8, each that is no character by itself in two with different others.

    None changes when text is normalized to composed forms, or joins the digit before it.
    """
    single = [chr(byte) for byte in range(128)]
    double = [bytes([first, last]).decode() for first in (0xC2, 0xD0) for last in range(0x80, 0xC0)]
    double += [bytes([first, last]).decode() for first in range(0xC3, 0xE0) for last in (0x98, 0xA0)]
    triple = [
        bytes([first, *tail]).decode()
        for first in range(0xE0, 0xF0)
        for tail in ((b"\x93\x84", b"\x9c\x95") if first == SURROGATES else (b"\xa2\x84", b"\xb3\x95"))
    ]
    quadruple = [
        bytes([first, *tail]).decode()
        for first in range(0xF0, 0xF5)
        for tail in ((b"\x8f\x99\x82", b"\x82\x88\xb3") if first == LAST_PLANE else (b"\x9f\x99\x82", b"\xa0\x88\xb3"))
    ]
    return [*single, *double, *triple, *quadruple]
