"""What is kept: the most recently used, up to a size."""

from __future__ import annotations

import sys
from functools import cached_property

from attrs import frozen

from openjev_core.recent import Recent, bytes_of


def test_the_least_recently_used_go_first():
    recent = Recent(3)
    for key in "abc":
        recent.keep(key, key.upper(), 1)
    recent.get("a")
    recent.keep("d", "D", 1)
    assert ["A", None, "C", "D"] == [recent.get(key) for key in "abcd"]


def test_a_large_one_takes_the_room_of_several():
    recent = Recent(4)
    for key in "abc":
        recent.keep(key, key.upper(), 1)
    recent.keep("d", "D", 3)
    assert [None, None, "C", "D"] == [recent.get(key) for key in "abcd"]


def test_one_over_the_capacity_pushes_nothing_out():
    recent = Recent(2)
    recent.keep("a", "A", 2)
    recent.keep("b", "B", 3)
    assert ["A", None] == [recent.get(key) for key in "ab"]


def test_a_value_takes_the_place_of_an_earlier_one_and_counts_once():
    recent = Recent(2)
    recent.keep("a", "A", 1)
    recent.keep("a", "other", 1)
    recent.keep("b", "B", 1)
    assert ["other", "B"] == [recent.get(key) for key in "ab"]


def test_one_that_grows_over_the_capacity_goes():
    recent = Recent(3)
    recent.keep("a", "A", 1)
    recent.keep("b", "B", 1)
    recent.keep("a", "larger", 4)
    assert [None, "B"] == [recent.get(key) for key in "ab"]
    assert 1 == recent.held


@frozen
class Held:
    text: str
    parts: tuple

    @cached_property
    def twice(self):
        return self.text * 2


def test_the_bytes_of_a_value_are_those_of_all_that_it_keeps_alive():
    held = Held("x" * 1000, ("y" * 100, {"key": ["z" * 10_000]}, None, 1.5, Held))
    parts = ["x" * 1000, held.parts, "y" * 100, held.parts[1], "key", ["z" * 10_000], "z" * 10_000, 1.5]
    assert sum(map(sys.getsizeof, [held, *parts])) == bytes_of(held)
    assert "xx" == held.twice[:2]
    assert sum(map(sys.getsizeof, [held, *parts, held.twice])) == bytes_of(held)


def test_what_is_held_twice_counts_once():
    shared = "x" * 1000
    assert sys.getsizeof(shared) + sys.getsizeof([1, 2]) == bytes_of([shared, shared])
