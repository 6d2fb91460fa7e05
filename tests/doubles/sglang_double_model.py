"""The double's "model": log-probabilities that tests can work out for themselves, and a prefix cache with counts."""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left
from collections.abc import Sequence

WIDTH = 4
"""Bytes of a token id in a packed prompt."""


def pack(ids: Sequence[int]) -> bytes:
    """A prompt as bytes: comparable, hashable and sliceable at C speed."""
    return array("I", ids).tobytes()


def logprob_of_packed(prompt_hash: int, label: int) -> float:
    """The log-probability of ``label`` after the prompt with this hash: between -8.05 and -16.05.

    All labels of a model together then have a probability below 1.
    """
    mixed = ((prompt_hash ^ (label * 2654435761)) * 0x9E3779B1) & 0xFFFFFFFF
    return -8.05 - (mixed >> 8) / (1 << 24) * 8


def logprob(ids: Sequence[int], label: int) -> float:
    """What the double answers for ``label`` after the prompt ``ids``."""
    return logprob_of_packed(zlib.crc32(pack(ids)), label)


class PrefixTree:
    """A radix tree of packed prompts."""

    def __init__(self) -> None:
        self.children: dict[bytes, tuple[bytes, PrefixTree]] = {}

    def match(self, prompt: bytes) -> int:
        """How many tokens of ``prompt`` are in the tree."""
        node, at = self, 0
        while at < len(prompt):
            found = node.children.get(prompt[at : at + WIDTH])
            if found is None:
                break
            edge, child = found
            shared = common(edge, prompt[at : at + len(edge)])
            at += shared
            if shared < len(edge):
                break
            node = child
        return at // WIDTH

    def insert(self, prompt: bytes) -> None:
        """Remember ``prompt``."""
        node, at = self, 0
        while at < len(prompt):
            first = prompt[at : at + WIDTH]
            found = node.children.get(first)
            if found is None:
                node.children[first] = (prompt[at:], PrefixTree())
                return
            edge, child = found
            shared = common(edge, prompt[at : at + len(edge)])
            if shared < len(edge):
                middle = PrefixTree()
                middle.children[edge[shared : shared + WIDTH]] = (edge[shared:], child)
                node.children[first] = (edge[:shared], middle)
                child = middle
            at += shared
            node = child


def common(left: bytes, right: bytes) -> int:
    """Bytes, in whole tokens, that the two begin with alike."""
    size = min(len(left), len(right))
    if left[:size] == right[:size]:
        return size
    differing = bisect_left(
        range(size // WIDTH), True, key=lambda n: left[: (n + 1) * WIDTH] != right[: (n + 1) * WIDTH]
    )
    return differing * WIDTH
