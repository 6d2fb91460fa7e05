"""Having a template count what it does: what goes through something or makes something is passed through filters.

The filters are those of :mod:`openjev_core.prompts.sandbox`, in which the template runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.visitor import NodeTransformer

from openjev_core.prompts.sandbox import LOOP, MADE, SEEN, Sandbox

INSTANT_FILTERS = frozenset({"length", "count", "first", "last", "default", "d", "attr", "safe"})
"""Filters that take no time, and make nothing."""

LIST_FILTERS = frozenset(
    (  # noqa: SIM905 - a line for each would be long
        "list sort unique groupby sum min max reverse dictsort items join map select selectattr reject rejectattr"
    ).split()
)
"""Filters that go through a list without writing its elements."""

GOING_THROUGH = frozenset({"in", "notin", "eq", "ne", "==", "!=", "equalto", "lower", "upper"})
"""Comparisons and tests that go through a value. The others look at its kind."""


def wrapped(node: Any, name: str) -> Any:
    """A node whose value goes through one of the filters that count; constants need none."""
    if isinstance(node, nodes.Const) or (isinstance(node, (nodes.List, nodes.Tuple)) and is_constant(node)):
        return node
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


def words_in(body: Iterable[nodes.Node]) -> int:
    """The characters that stand between the expressions of a loop's body, without those of loops inside it."""
    return sum(
        len(node.data) if isinstance(node, nodes.TemplateData) else words_in(node.iter_child_nodes())
        for node in body
        if not isinstance(node, nodes.For)
    )


def count_rounds(loop: nodes.For) -> Any:
    """Each round is a step, and writes what stands in the loop's body."""
    words = nodes.Const(words_in(loop.body), lineno=loop.lineno)
    loop.iter = nodes.Filter(loop.iter, LOOP, [words], [], None, None, lineno=loop.lineno)
    return loop


def count_filter(node: nodes.Filter) -> Any:
    """A filter's result is made, and a list that it is given is gone through."""
    if node.name in INSTANT_FILTERS:
        return node
    if node.name in LIST_FILTERS and node.node is not None:  # there is none where a whole block is filtered
        node.node = wrapped(node.node, SEEN)
    return wrapped(node, MADE)


def count_comparison(node: nodes.Compare) -> Any:
    """Some comparisons go through both sides; not one with a constant, which equals only what is as short."""
    equal = all(operand.op in ("eq", "ne") for operand in node.ops)
    if equal and any(isinstance(one, nodes.Const) for one in (node.expr, *(operand.expr for operand in node.ops))):
        return node
    if any(operand.op in GOING_THROUGH for operand in node.ops):
        node.expr = wrapped(node.expr, SEEN)
        for operand in node.ops:
            operand.expr = wrapped(operand.expr, SEEN)
    return node


def count_test(node: nodes.Test) -> Any:
    """So do some tests."""
    if node.name in GOING_THROUGH:
        node.node = wrapped(node.node, SEEN)
        node.args = [wrapped(arg, SEEN) for arg in node.args]
    return node


def count_joined(node: nodes.Concat) -> Any:
    """A joined text is made."""
    return wrapped(node, MADE)


def count_slice(node: nodes.Getitem) -> Any:
    """A slice is made."""
    return wrapped(node, MADE) if isinstance(node.arg, nodes.Slice) else node


def count_literal(node: nodes.List | nodes.Tuple | nodes.Dict) -> Any:
    """So is a list or mapping that is not the same each time. A tuple may be one that is assigned to."""
    assigned = isinstance(node, nodes.Tuple) and node.ctx != "load"
    return node if assigned or is_constant(node) else wrapped(node, MADE)


def is_constant(node: nodes.List | nodes.Tuple | nodes.Dict) -> bool:
    """Whether all values of a list or mapping are constants."""
    values = [pair.value for pair in node.items] if isinstance(node, nodes.Dict) else node.items
    return all(isinstance(value, nodes.Const) for value in values)


COUNTED: Mapping[type[nodes.Node], Callable[[Any], Any]] = {
    nodes.For: count_rounds,
    nodes.Filter: count_filter,
    nodes.Compare: count_comparison,
    nodes.Test: count_test,
    nodes.Concat: count_joined,
    nodes.Getitem: count_slice,
    nodes.List: count_literal,
    nodes.Tuple: count_literal,
    nodes.Dict: count_literal,
}
"""Kind of a node to what has it count."""


class Counting(NodeTransformer):
    """Has a template count what it does."""

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        """A node in which everything counts, from the inside out."""
        inner = self.generic_visit(node, *args, **kwargs)
        count = COUNTED.get(type(inner))
        return inner if count is None else count(inner)


def counted(environment: Sandbox, source: str) -> jinja2.Template:
    """A compiled template that counts what it does."""
    return environment.from_string(Counting().visit(environment.parse(source)))
