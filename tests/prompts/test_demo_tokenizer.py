"""The demo model's own tokenizer and template carry the prompts too."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from prompt_cases import model_of

from openjev_core.prompts.labels import candidates, verify_labels

PIECES = ["<|im_end|>", "<|im_start|>", "<|", "im_", "end|>", "\ufdd0", " ", "a", "\n"]
STATES = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@pytest.fixture(scope="module")
def reader(demo_tokenizer, demo_template):
    return model_of(demo_tokenizer, demo_template, 255)


def test_there_are_403_labels_of_one_token(reader):
    writer = reader.writer
    texts = [text for text, _ in verify_labels(writer, writer.write("x").ending, 403, ["Yes", "No"]).by_position]
    assert 403 == len(texts)
    assert list(candidates())[:26] == texts[:26]


def test_eight_bytes_have_no_token(reader):
    assert set(b"\x04\x06\x13\x14\x16\x1d\xf1\xf2") == set(reader.writer.encoder.alphabet.missing)


@given(st.text(max_size=30).map(str.strip))
@settings(max_examples=60)
def test_parts_are_the_whole(reader, words):
    assume(set(reader.writer.encoder.alphabet.missing).isdisjoint(words.encode()))
    prefix = reader.writer.write("A state.")
    whole = reader.writer.tokenizer.encode(f"{prefix.text} {words}{prefix.ending.text}", control=True)
    if not any(token in words for token in reader.writer.control.ids):
        assert whole == [*prefix.ids, *reader.writer.suffix(words, prefix.ending)]


@given(STATES)
@settings(max_examples=60)
def test_no_text_opens_or_closes_a_turn(reader, state):
    control = set(reader.writer.control.ids.values())
    count = sum(token in control for token in reader.writer.write("a").ids)
    prefix = reader.writer.write(state)
    assert count == sum(token in control for token in prefix.ids)
    assert prefix.text == reader.writer.tokenizer.decode(prefix.ids)
