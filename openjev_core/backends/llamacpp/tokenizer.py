"""llama.cpp's own tokenizer as a :class:`openjev_core.backends.protocol.Tokenizer`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from attrs import define, field

from openjev_core.backends.llamacpp.vocabulary import Vocabulary
from openjev_core.errors import BackendError


@define(eq=False)
class LlamaCppTokenizer:
    """The tokenizer of the model that a server has loaded.

    Attributes:
        vocabulary: The server.
        vocab_size: Ids lie in ``range(vocab_size)``.
        control_tokens: Texts that the server may read as one control or added token, with their ids.
    """

    vocabulary: Vocabulary
    vocab_size: int
    control_tokens: Mapping[str, int]
    _control_ids: frozenset[int] = field(init=False)
    _beginning: re.Pattern[str] = field(init=False)
    _lengths: tuple[int, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._control_ids = frozenset(self.control_tokens.values())
        # Gemma has 6,300 of them: one pattern of them all would try each at every "<" of a text.
        first = "".join(sorted({text[0] for text in self.control_tokens}))
        self._beginning = re.compile(f"[{re.escape(first)}]" if first else "(?!)")
        self._lengths = tuple(sorted({len(text) for text in self.control_tokens}))

    def encode(self, text: str, *, control: bool = False) -> list[int]:
        """See :meth:`openjev_core.backends.protocol.Tokenizer.encode`.

        The server leaves out a character for which the vocabulary has no token; ``prompts.alphabet`` refuses text that
        holds one.

        Raises:
            BackendUnavailable: The server does not answer.
            BackendError: It read plain text as a control token all the same.
        """
        if not text:
            return []
        if control:
            return self.vocabulary.tokenize([text], parse_special=True)
        ids = self.vocabulary.tokenize(self.broken_up(text), parse_special=False)
        if not self._control_ids.isdisjoint(ids):
            raise BackendError("llama.cpp reads a control token in text that only spells it")
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """See :meth:`openjev_core.backends.protocol.Tokenizer.decode`."""
        return self.vocabulary.detokenize(ids) if ids else ""

    def broken_up(self, text: str) -> list[str]:
        """``text`` in pieces none of which spells a control token: each is cut behind its first character.

        The server looks for user-defined tokens in any text; it cannot find one that is spread over two pieces.
        """
        pieces, start = [], 0
        for beginning in self._beginning.finditer(text):
            at = beginning.start()
            if any(text[at : at + length] in self.control_tokens for length in self._lengths):
                pieces.append(text[start : at + 1])
                start = at + 1
        return [*pieces, text[start:]]
