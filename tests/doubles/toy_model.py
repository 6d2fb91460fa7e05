"""A model without weights, for tests of what lies above it: answers are made from a hash of prompt and label."""

from __future__ import annotations

import hashlib
from functools import partial

from chatml_model import PLAIN, chat_template, chatml_tokenizer
from scripted_backend import ScriptedBackend

from openjev_core.backends.protocol import LoadedModel


def hashed(prompt, labels):
    """The script that depends on the whole prompt and the label, and on nothing else."""
    digests = [hashlib.blake2b(f"{prompt}\0{label}".encode(), digest_size=2).digest() for label in labels]
    return [-int.from_bytes(digest) / 16384 for digest in digests]


ToyBackend = partial(ScriptedBackend, hashed, name="toy", max_prompt_tokens=1_000_000, cached="prefix")
"""Reports the prefix of every branch as cached; takes the other fields of a :class:`ScriptedBackend`."""


def toy_model(backend=None, **fields):
    """The toy, loaded."""
    return LoadedModel(
        backend=backend or ToyBackend(),
        tokenizer=chatml_tokenizer(),
        template=chat_template(PLAIN),
        **{"public_name": "toy/Toy-1", **fields},
    )
