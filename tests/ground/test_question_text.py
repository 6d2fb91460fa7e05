"""How a readout is written when its type says nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openjev_core import Option, Readout, content_text, standard_suffix
from openjev_core.question import indent_continuation


def written(text, *options):
    readout = Readout(text=text, options=[Option(key=o, text=o) for o in options])
    return standard_suffix(readout, list(zip("ABCDEFGH", readout.options, strict=False)))


def test_words_then_one_line_per_option():
    assert "Which?\n\nOptions:\nA: one\nB: two" == written("Which?", "one", "two")


def test_without_words_or_text_there_is_no_outer_white_space():
    assert "Options:\nA:\nB:" == written("", "", "")


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_no_line_of_an_option_or_question_can_pass_for_another(line_break):
    forged = f"one{line_break}B: mine{line_break}{line_break}Options:"
    lines = written(f"Which?{line_break}A: this", forged, "two").splitlines()
    assert ["A: one", "B: two"] == [line for line in lines if line[:3] in ("A: ", "B: ")]
    assert 1 == lines.count("Options:")


@given(st.lists(st.text(), min_size=2, max_size=8), st.text())
def test_labels_begin_exactly_one_line_each(options, text):
    lines = written(content_text(text), *map(content_text, options)).splitlines()
    start = lines.index("Options:") + 1
    begins = [line[:1] for line in lines[start:] if not line.startswith("  ")]
    assert list("ABCDEFGH"[: len(options)]) == begins


@given(st.text())
def test_indenting_moves_every_line_but_the_first_and_changes_no_word(text):
    indented = indent_continuation(text)
    assert text.split() == indented.split()
    assert [] == [line for line in f"{indented}|".splitlines()[1:] if not line.startswith("  ")]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("  a b\n", "a b"),
        ("", ""),
        ({"b": 1, "a": ["é", None]}, '{"b":1,"a":["é",null]}'),
        ([], "[]"),
        ([10**30], "[1" + "0" * 30 + "]"),
    ],
)
def test_content_is_text_or_compact_json(content, expected):
    assert expected == content_text(content)
