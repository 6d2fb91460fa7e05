"""llama.cpp's own tokenizer as a :class:`openjev_core.backends.protocol.Tokenizer`, and its control tokens.

A GGUF's header says exactly which texts a server reads as one control or added token. Where the file cannot be read,
the server's vocabulary is searched for texts that look like control tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field

from openjev_core.backends.llamacpp.client import Vocabulary
from openjev_core.backends.llamacpp.gguf import GgufHeader
from openjev_core.errors import BackendError

LOOKS_LIKE_CONTROL = re.compile(r"<\|[^|<>\n]{1,60}\|>|<[^<>\s]{1,60}>|\[/?[A-Z_]{2,40}\]|<｜[^｜<>\n]{1,60}｜>")
DETOKENIZED_AT_ONCE = 8192


@define(eq=False)
class LlamaCppTokenizer:
    """The tokenizer of the model that a server has loaded.

    Attributes:
        vocabulary: Calls to the server.
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
        # Gemma has 6,300 control tokens. One pattern of them all would try each at every "<" of a text.
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
        """``text`` in pieces none of which spells a control token: each spelling is cut behind its first character.

        The server looks for user-defined tokens in every piece. It cannot find one that is spread over two pieces.
        """
        pieces, start = [], 0
        for beginning in self._beginning.finditer(text):
            at = beginning.start()
            if any(text[at : at + length] in self.control_tokens for length in self._lengths):
                pieces.append(text[start : at + 1])
                start = at + 1
        return [*pieces, text[start:]]


def control_tokens_from_header(header: GgufHeader, vocabulary: Vocabulary) -> dict[str, int]:
    """The control tokens of a model whose file is at hand.

    llama.cpp also treats some ordinary tokens as endings of a turn, because of their texts. So every ordinary token
    that looks like a control token is tried on the server.
    """
    ordinary = {
        text: token
        for token, text in enumerate(header.tokens)
        if LOOKS_LIKE_CONTROL.fullmatch(text) and text not in header.special
    }
    promoted = {
        text: token
        for text, token in ordinary.items()
        if vocabulary.tokenize([text], parse_special=True) == [token]
        and vocabulary.tokenize([text], parse_special=False) != [token]
    }
    return without_plain_text({**header.special, **promoted})


def control_tokens_from_server(vocabulary: Vocabulary, size: int, template: str) -> dict[str, int]:
    """The control tokens of a model whose file is not at hand.

    Every text in the vocabulary or the template that looks like a control token, and is one token, counts as a control
    token. Some are none: the ordinary token ``<br>``, spelled in a state, is then tokenized as its characters. Control
    tokens of another look are missed; with the model's file, which ``--model`` names, all of them are known.
    """
    found = {}
    for text in dict.fromkeys((*LOOKS_LIKE_CONTROL.findall(template), *_candidates(vocabulary, size))):
        ids = vocabulary.tokenize([text], parse_special=True)
        if len(ids) == 1:
            found[text] = ids[0]
    return without_plain_text(found)


def without_plain_text(tokens: Mapping[str, int]) -> dict[str, int]:
    """The tokens without white space and single characters.

    Some models list runs of line breaks among their added tokens. Plain text consists of these, and cannot be spelled
    in another way.
    """
    return {text: token for text, token in tokens.items() if len(text) > 1 and not text.isspace()}


def _candidates(vocabulary: Vocabulary, size: int) -> Iterator[str]:
    for start in range(0, size, DETOKENIZED_AT_ONCE):
        text = vocabulary.detokenize(range(start, min(start + DETOKENIZED_AT_ONCE, size)))
        yield from LOOKS_LIKE_CONTROL.findall(text)
