"""A tree of options, and the beam that is followed through it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import field, frozen

from openjev_core import Content, Distribution

Path = tuple[str, ...]
"""Names from the top of the tree to a node; empty for the whole tree."""


@frozen(kw_only=True)
class Node:
    """A part of a tree: a leaf, or a part with parts of its own.

    Attributes:
        description: What belongs here; the name speaks for itself where it is null or absent.
        children: The parts of this part, by name, each a node or null. A leaf has none.
    """

    description: Content | None = None
    children: dict[str, Node | None] = field(factory=dict)


Nodes = Mapping[str, Node | None]


def children_of(tree: Nodes, path: Path) -> Nodes:
    """The parts of the node at a path; none for a leaf."""
    for name in path:
        node = tree[name]
        tree = node.children if node is not None else {}
    return tree


def parts_of(tree: Nodes) -> Iterator[tuple[Path, Nodes]]:
    """Every part that is no leaf, with its parts; the whole tree first."""
    waiting: list[tuple[Path, Nodes]] = [((), tree)]
    while waiting:
        path, children = waiting.pop()
        yield path, children
        waiting.extend(((*path, name), node.children) for name, node in children.items() if node and node.children)


def leaves_of(tree: Nodes) -> Iterator[Path]:
    """Every leaf."""
    for path, children in parts_of(tree):
        yield from ((*path, name) for name, node in children.items() if not node or not node.children)


def probabilities(distributions: Sequence[Distribution]) -> dict[Path, float]:
    """Each node whose siblings were read, with its probability: the product of the choices that lead to it.

    Args:
        distributions: In the order asked, so that a node comes before its parts. Keys of readouts are paths.
    """
    known: dict[Path, float] = {(): 1.0}
    for distribution in distributions:
        path = distribution.readout.key
        for option, probability in zip(distribution.readout.options, distribution.probabilities, strict=True):
            known[(*path, option.key)] = known[path] * probability
    return known


def most_probable(paths: Collection[Path], known: Mapping[Path, float]) -> list[Path]:
    """Paths, most probable first."""
    return sorted(paths, key=lambda path: -known[path])


def next_beam(tree: Nodes, beam: int, last: Collection[Path], known: Mapping[Path, float]) -> list[Path]:
    """The nodes to look into next: the most probable of those whose parents were looked into last.

    One that is no more probable than the best leaf so far can hold no better one, so it is left aside.

    Args:
        tree: The tree.
        beam: How many nodes of a level are looked into.
        last: The nodes that were looked into last.
        known: Of every node that was read, its probability.
    """
    best = max((p for path, p in known.items() if path and not children_of(tree, path)), default=0.0)
    parts = [(*path, name) for path in last for name in children_of(tree, path)]
    open_parts = [path for path in parts if known[path] > best and children_of(tree, path)]
    return most_probable(open_parts, known)[:beam]
