"""A model without weights, for tests of what lies above it: one token per character, answers made from a hash."""

from __future__ import annotations

import asyncio
import hashlib
import re
import string
from contextlib import asynccontextmanager

from attrs import define, field, frozen

from openjev_core.backends.protocol import ChatTemplate, LoadedModel, Reading

WORDS = ["Yes", "No", *(a + b for a in string.ascii_uppercase for b in string.ascii_uppercase)]
CONTROL = {"<|im_start|>": 0x110000, "<|im_end|>": 0x110001}
FIRST_WORD = 0x110010

TEMPLATE = """{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}"""


@frozen
class ToyTokenizer:
    """Characters are their own ids; labels of several letters and control tokens have ids above Unicode's."""

    vocab_size: int = FIRST_WORD + len(WORDS)

    @property
    def control_tokens(self):
        return CONTROL

    def encode(self, text, *, control=False):
        pattern = r"<\|im_start\|>|<\|im_end\|>|Yes|No|[A-Z]{2}|(?s:.)" if control else r"Yes|No|[A-Z]{2}|(?s:.)"
        return [self._id(piece) for piece in re.findall(pattern, text)]

    def decode(self, ids):
        return "".join(self._text(token) for token in ids)

    def _id(self, piece):
        if piece in CONTROL:
            return CONTROL[piece]
        return ord(piece) if len(piece) == 1 else FIRST_WORD + WORDS.index(piece)

    def _text(self, token):
        if token >= FIRST_WORD:
            return WORDS[token - FIRST_WORD]
        return next((text for text, known in CONTROL.items() if known == token), None) or chr(token)


def toy_logprob(prefix, suffix, label):
    """What the toy answers: depends on the whole prompt and the label, and on nothing else."""
    digest = hashlib.blake2b(repr((*prefix, *suffix, label)).encode(), digest_size=2).digest()
    return -int.from_bytes(digest) / 16384


@define
class ToyBackend:
    """Answers by :func:`toy_logprob`.

    Attributes:
        seconds: How long each read takes.
        error: Raised by the next calls, and by health checks, while set.
        running: Reads that are in progress.
        cancelled: Reads that were cancelled.
    """

    seconds: float = 0.0
    error: Exception | None = None
    running: int = 0
    cancelled: int = 0
    name: str = "toy"
    max_prompt_tokens: int = 1_000_000
    prefixes: list = field(factory=list)

    @asynccontextmanager
    async def prefix(self, ids, *, key, single=False):
        yield _ToyPrefix(self, tuple(ids))

    async def check(self):
        if self.error is not None:
            raise self.error

    async def aclose(self):
        pass


@frozen
class _ToyPrefix:
    backend: ToyBackend
    ids: tuple

    @property
    def warm_up(self):
        return Reading((0.0,), len(self.ids), 0)

    async def read(self, branches, shared=0):
        backend = self.backend
        backend.running += 1
        try:
            if backend.seconds:
                await asyncio.sleep(backend.seconds)
            if backend.error is not None:
                raise backend.error
        except asyncio.CancelledError:
            backend.cancelled += 1
            raise
        finally:
            backend.running -= 1
        return [
            Reading(
                tuple(toy_logprob(self.ids, branch.suffix, label) for label in branch.labels),
                len(self.ids) + len(branch.suffix),
                len(self.ids),
            )
            for branch in branches
        ], []


def toy_model(backend=None, **fields):
    """The toy, loaded."""
    return LoadedModel(
        backend=backend or ToyBackend(),
        tokenizer=ToyTokenizer(),
        template=ChatTemplate(TEMPLATE),
        **{"public_name": "toy/Toy-1", **fields},
    )
