"""What is kept: the most recently used, up to a size."""

from __future__ import annotations

from openjev_core.recent import Recent


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


def test_the_first_value_stays_and_counts_once():
    recent = Recent(2)
    recent.keep("a", "A", 1)
    recent.keep("a", "other", 1)
    recent.keep("b", "B", 1)
    assert ["A", "B"] == [recent.get(key) for key in "ab"]
