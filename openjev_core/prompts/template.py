"""A model's own chat template: rendering it, and finding out what it takes.

Templates come from model repositories, so they run in jinja2's immutable sandbox, in the environment that they are
written for (that of the transformers library) and with nothing else in scope.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, NoReturn

import jinja2
from attrs import define, frozen
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.runtime import Context
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


MAX_STEPS = 250_000
"""Upper bound on the rounds of all loops and the calls of one rendering. A chat that a model can read takes some
thousand."""

MAX_WRITTEN = 64 * 1024 * 1024
"""Upper bound on the characters that a rendering writes, and that one repetition makes."""

JOINED = "_openjev_joined"
"""The name of the filter that every joined text goes through."""

WIDTH = re.compile(r"[0-9]{6}")
"""A width in a text for formatting that no prompt needs."""

BOUNDS = "_openjev_bounds"
"""The name under which a rendering holds its :class:`Bounds`, and of the filter that every loop goes through."""


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's immutable sandbox, which bounds calls and what texts are repeated, joined and padded to.

    It is no fence around a program that means harm: such a model should not be run at all. It keeps a template with a
    fault from holding the server.
    """

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def call(self, context: Context, obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a macro, a method or a function of the template."""
        context[BOUNDS].step()
        for arg in args:
            if isinstance(arg, int) and arg > MAX_WRITTEN:
                raise TemplateRefusal(f"a call is given a number above {MAX_WRITTEN:,}")
        return bounded(super().call(context, obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """``left * right`` and the like."""
        if operator == "**" and not (isinstance(right, (int, float)) and abs(right) <= 64):  # noqa: PLR2004 - 2 ** 64
            raise TemplateRefusal("it takes a power above 64")
        for sequence, times in ((left, right), (right, left)) if operator == "*" else ():
            if isinstance(sequence, Sized) and isinstance(times, int) and len(sequence) * times > MAX_WRITTEN:
                raise TemplateRefusal(f"it repeats a text to more than {MAX_WRITTEN:,} characters")
        if operator == "%" and isinstance(left, str) and WIDTH.search(left):
            raise TemplateRefusal("it pads a text to a width of more than five digits")
        return bounded(super().call_binop(context, operator, left, right))


def bounded(value: Any) -> Any:
    """A value that is not too long.

    Raises:
        TemplateRefusal: It is.
    """
    if isinstance(value, str) and len(value) > MAX_WRITTEN:
        raise TemplateRefusal(f"it makes a text of more than {MAX_WRITTEN:,} characters")
    return value


@define
class Bounds:
    """What one rendering has done so far."""

    steps: int = 0
    written: int = 0

    def step(self, count: int = 1) -> None:
        """Count rounds of loops, calls, and numbers of a range.

        Raises:
            TemplateRefusal: There are too many.
        """
        self.steps += count
        if self.steps > MAX_STEPS:
            raise TemplateRefusal(f"its loops and calls take more than {MAX_STEPS:,} steps")

    def rounds(self, values: Iterable[Any]) -> Iterator[Any]:
        """The values that a loop goes through, counted."""
        for value in values:
            self.step()
            yield value

    def write(self, text: str) -> str:
        """Count a text that is written.

        Raises:
            TemplateRefusal: There is too much.
        """
        self.written += len(text)
        if self.written > MAX_WRITTEN:
            raise TemplateRefusal(f"it writes more than {MAX_WRITTEN:,} characters")
        return text


@frozen
class Renderer:
    """A compiled chat template."""

    _template: jinja2.Template
    _special: Mapping[str, str]

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt text up to where the assistant's answer begins, thinking off.

        Raises:
            TemplateRefusal: The template raised, or does more than a template may.
        """
        bounds = Bounds()
        # `enable_thinking` and `thinking` are the two names by which templates let it be switched off.
        variables = {
            "messages": messages,
            "tools": None,
            "documents": None,
            "add_generation_prompt": True,
            "enable_thinking": False,
            "thinking": False,
            **self._special,
            BOUNDS: bounds,
        }
        try:
            return "".join(map(bounds.write, self._template.generate(variables)))
        except TemplateRefusal:
            raise
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
    # Not optimized: that would compute what is constant now, without any bound.
    environment = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation], optimized=False)
    environment.globals["range"] = _range
    environment.filters["format"] = _format
    environment.filters["tojson"] = _tojson
    environment.filters[BOUNDS] = _bounded
    environment.filters[JOINED] = bounded
    environment.globals["raise_exception"] = _raise_exception
    try:
        parsed = environment.parse(template.source)
        for loop in parsed.find_all(nodes.For):
            # Nothing else in the sandbox bounds loops in loops.
            loop.iter = nodes.Filter(loop.iter, BOUNDS, [], [], None, None, lineno=loop.lineno)
        for joined in list(parsed.find_all(nodes.Concat)):
            text = nodes.Concat(joined.nodes, lineno=joined.lineno)
            joined.nodes = [nodes.Filter(text, JOINED, [], [], None, None, lineno=joined.lineno)]
        compiled = environment.from_string(parsed)
    except RecursionError:
        raise StartupError(
            "the model's chat template is nested too deep to be compiled; choose another model"
        ) from None
    except Exception as error:
        # Templates come from model repositories. Python's compiler, to which Jinja hands its own code, refuses some
        # that Jinja takes: SyntaxError for 200 brackets in one another, MemoryError, ValueError for a null character.
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


@jinja2.pass_context
def _bounded(context: Context, values: Iterable[Any]) -> Iterator[Any]:
    bounds: Bounds = context[BOUNDS]
    return bounds.rounds(values)


@jinja2.pass_context
def _range(context: Context, *args: int) -> range:
    numbers = range(*args)
    context[BOUNDS].step(len(numbers))
    return numbers


def _format(text: str, *args: Any, **kwargs: Any) -> str:
    if WIDTH.search(text):
        raise TemplateRefusal("it pads a text to a width of more than five digits")
    return str(text) % (kwargs or args)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


@frozen(kw_only=True)
class Traits:
    """What a template can take.

    Attributes:
        takes_two_user_turns: A user turn may follow a user turn.
        takes_parts: A message's content may be an array of text parts.
        takes_null: A message's content may be null.
        shows_tool_calls: ``tool_calls`` of a message without words are written out.
        shows_calls_with_words: ``tool_calls`` and ``content`` of one message are both written out.
        knows_developer: The role ``developer`` has a form of its own.
        shows_reasoning: ``reasoning_content`` of a message without words is written out.
    """

    takes_two_user_turns: bool = True
    takes_parts: bool = True
    takes_null: bool = True
    shows_tool_calls: bool = True
    shows_calls_with_words: bool = True
    knows_developer: bool = True
    shows_reasoning: bool = True


def traits_of(renderer: Renderer) -> Traits:
    """What a template can take, found out by trying it on small chats."""
    first, second, third = "sentinel-one", "sentinel-two", "sentinel-three"

    def rendered(*messages: Message) -> str | None:
        try:
            return renderer.render(list(messages))
        except TemplateRefusal:
            return None

    def user(content: Any) -> Message:
        return {"role": "user", "content": content}

    def assistant(content: Any, **more: Any) -> Message:
        return {"role": "assistant", "content": content, **more}

    def shows(text: str | None, *words: str) -> bool:
        return text is not None and all(word in text for word in words)

    call = {"id": "call_1", "type": "function", "function": {"name": first, "arguments": {"key": third}}}
    # A template that knows strings only may write another value in Python's notation: what counts is the same text.
    in_parts, as_text = rendered(user([{"type": "text", "text": first}])), rendered(user(first))
    with_null, with_empty = (rendered(user(first), assistant(content), user(second)) for content in (None, ""))
    # A template that writes any role alike was not made for this one.
    developer, nobody = (rendered({"role": role, "content": first}, user(second)) for role in ("developer", "nobody"))
    return Traits(
        takes_two_user_turns=shows(rendered(user(first), user(second)), first, second),
        takes_parts=in_parts is not None and in_parts == as_text,
        takes_null=with_null is not None and with_null == with_empty,
        shows_tool_calls=shows(rendered(user("x"), assistant("", tool_calls=[call]), user("x")), first, third),
        shows_calls_with_words=shows(
            rendered(user("x"), assistant(second, tool_calls=[call]), user("x")), first, second, third
        ),
        knows_developer=shows(developer, first) and str(developer).replace("developer", "nobody") != nobody,
        shows_reasoning=shows(rendered(user(first), assistant("", reasoning_content=third), user(second)), third),
    )
