"""The environment that chat templates run in: that of the transformers library, held to bounds.

A template in it counts what it does (:mod:`openjev_core.prompts.bounds`), once it was prepared for that
(:mod:`openjev_core.prompts.counting`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.filters import do_indent, make_attrgetter
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from openjev_core.prompts.bounds import LIST_STEP, Bounds, TemplateRefusal

MOST_BITS = 20_000
"""Bits of an integer."""

MOST_INDENTED = 16
"""Spaces by which JSON is indented."""

WIDTH = re.compile(r"[0-9]{6}|%[-#0 +]*\*|%[^%a-zA-Z]*\.\*|\{[^{}]*\{")
"""A width in a text for formatting that no prompt needs, or one that stands elsewhere."""

UNUSED_FILTERS = frozenset(
    (  # noqa: SIM905 - a line for each would be long
        "batch center filesizeformat forceescape pprint random slice striptags urlize wordcount wordwrap xmlattr"
    ).split()
)
"""Filters for web pages and print. Each would need a bound of its own, and no known template has them."""

UNSAFE_METHODS = frozenset({"translate", "expandtabs", "encode"})
"""Methods of texts that make much of little."""

BOUNDS, LOOP, SEEN, MADE = (f"_openjev_{name}" for name in ("bounds", "loop", "seen", "made"))
"""The name of a rendering's :class:`Bounds`, and the filters for loops, inputs and results."""


class _Generation(Extension):
    """``{% generation %}`` marks the assistant's words for training; for inference its body is just rendered."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it as a plain set

    def parse(self, parser: Any) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's immutable sandbox, which counts what a rendering does. templates have to be prepared for it."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may use an attribute."""
        return attr not in UNSAFE_METHODS and super().is_safe_attribute(obj, attr, value)

    def call(self, context: Context, obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a macro, a method or a function of the template."""
        bounds: Bounds = context[BOUNDS]
        # The sandbox wraps the methods that format.
        owner, name = getattr(getattr(obj, "__wrapped__", obj), "__self__", None), getattr(obj, "__name__", "")
        for value in (owner, *args, *kwargs.values()):
            if not isinstance(value, int):
                bounds.see(value)
            elif value > bounds.most_made:
                raise TemplateRefusal(f"a call is given a number above {bounds.most_made:,}")
        if isinstance(owner, str) and name == "replace":
            check_replacement(bounds, owner, *args, **kwargs)
        elif isinstance(owner, str) and name == "join":
            args = (check_joined(bounds, owner, *args),)
        elif isinstance(owner, str) and name in ("format", "format_map"):
            check_formatted(bounds, owner, [*args, *kwargs.values()])
        return bounds.make(super().call(context, obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """``left * right`` and the like."""
        bounds: Bounds = context[BOUNDS]
        if isinstance(left, int) and isinstance(right, int) and operator in ("*", "**"):
            bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
            if bits > MOST_BITS:
                raise TemplateRefusal(f"it makes a number of more than {MOST_BITS:,} bits")
        for sequence, times in ((left, right), (right, left)) if operator == "*" else ():
            if isinstance(sequence, (str, list, tuple)) and isinstance(times, int) and times > 0:
                bounds.step(0 if isinstance(sequence, str) else len(sequence) * times // LIST_STEP)
                bounds.grow(bounds.weigh(sequence) * times)
        if operator == "%" and isinstance(left, str):
            check_formatted(bounds, left, right if isinstance(right, tuple) else [right])
        return bounds.make(super().call_binop(context, operator, left, right))

    def call_filter(  # noqa: PLR0917 - jinja2's
        self,
        name: str,
        value: Any,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        context: Context | None = None,
        eval_ctx: Any = None,
    ) -> Any:
        """Apply a filter to one element, for ``map``."""
        made = super().call_filter(name, value, args, kwargs, context, eval_ctx)
        return made if context is None else context[BOUNDS].make(made)


def check_replacement(bounds: Bounds, text: str, old: str, new: str, count: int = -1) -> None:
    """Count in advance what replacing makes."""
    found = text.count(old) if count < 0 else min(text.count(old), count)
    bounds.grow(found * max(len(new) - len(old), 0))


def check_joined(bounds: Bounds, between: str, values: Iterable[Any]) -> list[Any]:
    """The values of a joined text, which is counted in advance."""
    parts: list[Any] = []
    for value in values:
        bounds.step(int(len(parts) % LIST_STEP == 0))
        parts.append(value)
    bounds.grow(len(between) * len(parts) + sum(map(bounds.weigh, parts)))
    return parts


def check_formatted(bounds: Bounds, text: str, values: Sequence[Any]) -> None:
    """Count in advance what formatting makes.

    Raises:
        TemplateRefusal: It pads to a width.
    """
    if WIDTH.search(text):
        raise TemplateRefusal("it pads a text to a width of more than five digits, or to one that stands elsewhere")
    bounds.grow((text.count("%") + text.count("{")) * max(map(bounds.weigh, values), default=0))


def sandbox() -> Sandbox:
    """An environment for one chat template."""
    # Not optimized: that would compute what is constant now, without any bound.
    environment = Sandbox(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[loopcontrols, _Generation],
        optimized=False,
        finalize=_written,
    )
    for name in UNUSED_FILTERS:
        del environment.filters[name]
    del environment.globals["lipsum"]
    environment.globals.update(range=_range, raise_exception=_raise_exception)
    environment.filters.update(
        {
            "format": _format,
            "tojson": _tojson,
            "replace": _replace,
            "join": _join,
            "indent": _indent,
            LOOP: _rounds,
            SEEN: _seen,
            MADE: _made,
        }
    )
    return environment


@jinja2.pass_context
def _rounds(context: Context, values: Iterable[Any], words: int) -> Iterator[Any]:
    bounds: Bounds = context[BOUNDS]
    for value in values:
        bounds.step()
        bounds.grow(words)
        yield value


@jinja2.pass_context
def _seen(context: Context, value: Any) -> Any:
    return context[BOUNDS].see(value, deep=True)


@jinja2.pass_context
def _made(context: Context, value: Any) -> Any:
    return context[BOUNDS].make(value)


@jinja2.pass_context
def _written(context: Context, value: Any) -> Any:
    bounds: Bounds = context[BOUNDS]
    bounds.grow(bounds.weigh(value))
    return value


@jinja2.pass_context
def _replace(context: Context, text: Any, old: Any, new: Any, count: int | None = None) -> str:
    text, old, new, most = str(text), str(old), str(new), -1 if count is None else count
    check_replacement(context[BOUNDS], text, old, new, most)
    replaced: str = text.replace(old, new, most)
    return replaced


@jinja2.pass_context
def _join(context: Context, values: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
    if attribute is not None:
        values = map(make_attrgetter(context.environment, attribute), values)
    return str(d).join(map(str, check_joined(context[BOUNDS], str(d), values)))


@jinja2.pass_context
def _indent(context: Context, text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    context[BOUNDS].grow((text.count("\n") + 1) * (width if isinstance(width, int) else len(width)))
    return str(do_indent(text, width, first, blank))


@jinja2.pass_context
def _format(context: Context, text: str, *args: Any, **kwargs: Any) -> str:
    check_formatted(context[BOUNDS], text, [*args, *kwargs.values()])
    return str(text) % (kwargs or args)


@jinja2.pass_context
def _tojson(  # noqa: PLR0917 - jinja2's and the library's
    context: Context,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # jinja2's own filter escapes for HTML, which would change what the model reads.
    if indent is None:
        return json.dumps(value, ensure_ascii=ensure_ascii, separators=separators, sort_keys=sort_keys)
    if not (isinstance(indent, int) and indent <= MOST_INDENTED):
        raise TemplateRefusal(f"it indents JSON by more than {MOST_INDENTED} spaces")
    encoder = json.JSONEncoder(ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    pieces = []
    for piece in encoder.iterencode(value):
        context[BOUNDS].grow(len(piece))
        pieces.append(piece)
    return "".join(pieces)


@jinja2.pass_context
def _range(context: Context, *args: int) -> range:
    numbers = range(*args)
    context[BOUNDS].step(len(numbers))
    return numbers


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)
