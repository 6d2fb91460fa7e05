"""Which texts a llama.cpp server reads as one control or added token.

A GGUF's header says it exactly. Of a server whose file cannot be read, the vocabulary is searched for texts that look
like control tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from openjev_core.backends.llamacpp.gguf import GgufHeader
from openjev_core.backends.llamacpp.vocabulary import Vocabulary

LOOKS_LIKE_CONTROL = re.compile(r"<\|[^|<>\n]{1,60}\|>|<[^<>\s]{1,60}>|\[/?[A-Z_]{2,40}\]|<｜[^｜<>\n]{1,60}｜>")
DETOKENIZED_AT_ONCE = 8192


def from_header(header: GgufHeader, vocabulary: Vocabulary) -> dict[str, int]:
    """The control tokens of a model whose file is at hand.

    llama.cpp also takes some ordinary tokens for endings of a turn, by their texts: those that look like control
    tokens are tried on it.
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
    return cannot_be_text({**header.special, **promoted})


def from_server(vocabulary: Vocabulary, size: int, template: str) -> dict[str, int]:
    """The control tokens of a model of which only the server is known.

    Every text in the vocabulary or the template that looks like a control token and is one token counts as one. That
    may be too many: the ordinary token ``<br>``, spelled in a state, is then tokenized as its characters. An added
    token that looks otherwise is missed; naming the model's file with ``--model`` finds all of them.
    """
    found = {}
    for text in dict.fromkeys((*LOOKS_LIKE_CONTROL.findall(template), *_candidates(vocabulary, size))):
        ids = vocabulary.tokenize([text], parse_special=True)
        if len(ids) == 1:
            found[text] = ids[0]
    return cannot_be_text(found)


def cannot_be_text(tokens: Mapping[str, int]) -> dict[str, int]:
    """Without blank space and single characters: some models list runs of line breaks among their added tokens.

    They are what plain text is made of, and cannot be spelled in another way.
    """
    return {text: token for text, token in tokens.items() if len(text) > 1 and not text.isspace()}


def _candidates(vocabulary: Vocabulary, size: int) -> Iterator[str]:
    for start in range(0, size, DETOKENIZED_AT_ONCE):
        text = vocabulary.detokenize(range(start, min(start + DETOKENIZED_AT_ONCE, size)))
        yield from LOOKS_LIKE_CONTROL.findall(text)
