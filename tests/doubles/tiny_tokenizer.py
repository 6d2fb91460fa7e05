"""A Hugging Face tokenizer directory of a few kilobytes: a token per byte, and one per label of two letters."""

from __future__ import annotations

import itertools
import json
import string

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

TEMPLATE = """{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}"""


SPECIAL = ("<|im_start|>", "<|im_end|>")


def tiny_tokenizer(*added):
    """The tokenizer itself; ``added`` are tokens that are not marked special, such as ``<think>``."""
    merges = list(itertools.product(string.ascii_uppercase, repeat=2))
    merges += [("N", "o"), ("Y", "e"), ("Ye", "s")]
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in merges)]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken(text, special=True) for text in SPECIAL])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in added])
    return tokenizer


def write_tiny_tokenizer(directory):
    """Write ``tokenizer.json``, ``tokenizer_config.json`` and ``chat_template.jinja``; returns the directory."""
    tokenizer = tiny_tokenizer()
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>"}), "utf-8")
    (directory / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    return directory
