"""Whether a server tokenizes text as this side does, where their tokenizers' files cannot be compared.

Two models of one name may differ in their tokenizers, and ids of the one are nonsense to the other: it would answer
all the same. The server is sent text instead of ids, and says how many tokens it made of it.
"""

from __future__ import annotations

import orjson

from openjev_core.backends.protocol import Tokenizer
from openjev_core.backends.sglang.backend import CHECK_KEY, SGLangBackend
from openjev_core.backends.sglang.wire import FIXED_FIELDS, parse_one
from openjev_core.errors import BackendError, BackendUnavailable, DeadlineExceeded, StartupError

TIMEOUT = 30.0

PLAIN = "A"
"""What a tokenizer puts around a text by itself counts here too, and cancels out."""

TRICKY = (
    "Hello, world!  'Tis 1984: -12345.678e9 \u20ac \u00bd.\r\n\n\t\tdef f(x):\n        return {'a': [1, None]}  \n"
    "\u00dcn\u00efc\u00f6de e\u0301 \u4e2d\u6587\u95ee\u9898 \u65e5\u672c\u8a9e \ud55c\uad6d\uc5b4 "
    "\u09ac\u09be\u0982\u09b2\u09be \u0939\u093f\u0928\u094d\u0926\u0940 \u0627\u0644\u0639\u0631\u0628\u064a\u0629 "
    "\u05e2\u05d1\u05e8\u05d9\u05ea \u0e44\u0e17\u0e22 \U0001f642\U0001f469\u200d\U0001f467 "
    "antidisestablishmentarianism"
)
"""Scripts, digits, signs, white space and rare words: vocabularies divide these differently."""


async def tokens_line(backend: SGLangBackend, tokenizer: Tokenizer) -> str:
    """What came of the comparison, in a line for a person.

    Raises:
        StartupError: The server makes another number of tokens of a text, or does not answer.
    """
    try:
        counts = [await count_tokens(backend, text) for text in (PLAIN, TRICKY)]
    except (BackendUnavailable, DeadlineExceeded) as error:
        raise StartupError(f"tokens: expected an answer to a text from {backend.client.url}, found: {error}") from None
    except BackendError as error:
        return f"tokens: not compared, the server takes no text ({error})"
    plain, tricky = counts
    theirs = tricky - plain
    ours = len(tokenizer.encode(TRICKY)) - len(tokenizer.encode(PLAIN))
    if theirs != ours:
        raise StartupError(
            f"tokens: expected a server that makes {ours} tokens more of one text than of another, as the tokenizer "
            f"here does, found one that makes {theirs} more: it has another tokenizer; name its own with --model"
        )
    return f"tokens: a text of {len(TRICKY)} characters is {ours} tokens on both sides"


async def count_tokens(backend: SGLangBackend, text: str) -> int:
    """How many tokens the server makes of a text.

    Raises:
        BackendError: It does not say.
    """
    body = b'{"rid":"%b","text":%b,"token_ids_logprob":[0],%b' % (
        backend.new_rid().encode(),
        orjson.dumps(text),
        FIXED_FIELDS,
    )
    answer = await backend.client.generate(body, routing_key=CHECK_KEY, seconds=TIMEOUT)
    meta = parse_one(answer).meta_info
    if meta is None or meta.prompt_tokens is None:
        raise BackendError("no prompt_tokens in its answer")
    return meta.prompt_tokens
