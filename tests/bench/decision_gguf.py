"""A copy of a GGUF that llama.cpp takes for a decision model, so that its own `/v1/systemone` answers from it.

llama.cpp answers that route for models only whose metadata name a kind of decision model and a template for its
prompts. Of the kinds, `openjev` reads one letter per option behind the prompt, as this project does: any chat
model will do. The template here writes the prompts that this project writes, so that both compute the same tokens.
"""

from __future__ import annotations

import struct
from pathlib import Path

from openjev_core.backends.llamacpp.gguf import MAGIC, STRING

COUNT_AT, METADATA_AT = 16, 24
ALIGNMENT = 32
"""Tensors lie at multiples of this behind the header: what is put into the header has to be one, too."""

TEMPLATE = (
    "{before}{{{{ state }}}}{after} {{{{ instructions }}}}{{{{ '\\n\\nOptions:' }}}}"
    "{{% for option in options %}}{{{{ '\\n' ~ 'ABCDEFGHIJ'[loop.index0] ~ ': ' }}}}"
    "{{% if type == 'noul' %}}the answer is {{{{ 'yes' if option.key == 'true' else 'no' }}}}"
    "{{% else %}}{{{{ option.description }}}}{{% endif %}}{{% endfor %}}{{{{ {ending!r} }}}}"
)
"""`before` and `after` are what stands around the state in a prefix, `ending` what ends each branch. Line feeds beside
tags are written as strings: the environment strips plain ones."""


def template(before, after, ending):
    """The template that writes this project's prompts, for questions without criteria of their own or with texts."""
    return TEMPLATE.format(before=before, after=after, ending=ending)


def write_decision_gguf(model: Path, path: Path, prompts: str) -> None:
    """Copy `model` to `path` as an `openjev` decision model of the Llama architecture with this template."""
    added = text("llama.decision.type") + struct.pack("<I", STRING) + text("openjev")
    added += text("tokenizer.chat_template.systemone") + struct.pack("<I", STRING)
    comment = "{# #}"
    short = -(len(added) + len(text(prompts + comment))) % ALIGNMENT
    added += text(prompts + comment.replace(" ", " " * (1 + short)))
    content = model.read_bytes()
    if content[: len(MAGIC)] != MAGIC:
        raise ValueError(f"{model} is no GGUF")
    (count,) = struct.unpack_from("<Q", content, COUNT_AT)
    with path.open("wb") as file:
        file.write(content[:COUNT_AT] + struct.pack("<Q", count + 2) + added)
        file.write(content[METADATA_AT:])


def text(value):
    """A string as GGUF writes it."""
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded
