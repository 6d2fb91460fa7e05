"""Rendering a model's own chat template.

Templates come from model repositories, so they run in jinja2's immutable sandbox, in the environment that they are
written for (that of the transformers library) and with nothing else in scope.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import jinja2
from attrs import frozen
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from openjev_core.backends.protocol import ChatTemplate
from openjev_core.errors import StartupError

Message = dict[str, Any]


class TemplateRefusal(Exception):
    """A template raised on these messages. The message is the template's own reason."""


class _Generation(Extension):
    """``{% generation %}`` marks the assistant's words for training; for inference its body is just rendered."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it as a plain set

    def parse(self, parser: Any) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@frozen
class Renderer:
    """A compiled chat template."""

    _template: jinja2.Template
    _special: Mapping[str, str]

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt text up to where the assistant's answer begins, thinking off.

        Raises:
            TemplateRefusal: The template raised.
        """
        try:
            # `enable_thinking` and `thinking` are the two names by which templates let it be switched off.
            return self._template.render(
                messages=messages,
                tools=None,
                documents=None,
                add_generation_prompt=True,
                enable_thinking=False,
                thinking=False,
                **self._special,
            )
        except RecursionError as error:
            raise TemplateRefusal("the messages are nested too deep") from error
        except Exception as error:
            # Templates index and concatenate whatever they are given, so any exception is their way to say no.
            raise TemplateRefusal(str(error) or type(error).__name__) from error


def compile_template(template: ChatTemplate) -> Renderer:
    """Compile a chat template.

    Raises:
        StartupError: It is no valid Jinja.
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    try:
        compiled = environment.from_string(template.source)
    except jinja2.TemplateError as error:
        raise StartupError(f"the model's chat template is not valid Jinja: {error}; choose another model") from error
    return Renderer(compiled, {"bos_token": template.bos_token, "eos_token": template.eos_token})


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # jinja2's own filter escapes for HTML, which would change what the model reads.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)
