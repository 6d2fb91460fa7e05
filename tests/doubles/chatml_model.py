"""A small model of the project's own, as far as prompts see it: a ChatML template and a tokenizer of some kilobytes."""

from __future__ import annotations

import json
from functools import cache

from tiny_tokenizer import tiny_tokenizer

from openjev_core.backends.protocol import ChatTemplate
from openjev_core.prompts.tokenizer import tokenizer_from

ADDED = ("<think>", "</think>", "<tool_call>", "</tool_call>")

CHATML = """{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.content is string %}
{{- message.content }}
{%- else %}
{%- for part in message.content or [] %}
{{- part.text }}
{%- endfor %}
{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": ' + call.function.name | tojson + ', "arguments": ' }}
{{- call.function.arguments | tojson + '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}
{{- '<think>\\n\\n</think>\\n\\n' }}
{%- endif %}
{%- endif %}"""
"""Shows everything."""

PLAIN = """{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content | trim }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}"""
"""Knows text content only: no parts, no null, no tool calls."""

ALTERNATING = """{%- if messages[0].role == 'system' %}{% set offset = 1 %}{% else %}{% set offset = 0 %}{% endif %}
{%- for message in messages %}
{%- if message.role == 'system' and not loop.first %}{{ raise_exception('System message must be first.') }}{% endif %}
{%- if message.role in ('user', 'assistant') and (message.role == 'user') != ((loop.index0 - offset) % 2 == 0) %}
{{- raise_exception('Roles must alternate user/assistant.') }}
{%- endif %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.content is string %}{{ message.content }}{% else %}
{%- for part in message.content %}{{ part.text }}{% endfor %}{% endif %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
"""Insists on user and assistant in turn, and on a system message that stands first."""


@cache
def chatml_tokenizer():
    """The tokenizer."""
    return tokenizer_from(json.loads(tiny_tokenizer(*ADDED).to_str()))


def chat_template(source=CHATML):
    """A template for it."""
    return ChatTemplate(source, "", "<|im_end|>")
