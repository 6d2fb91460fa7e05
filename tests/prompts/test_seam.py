"""Prefix and suffixes are tokenized apart, and give what tokenizing the whole prompt gives."""

from __future__ import annotations

import json

import pytest
from attrs import frozen
from chatml_model import CHATML, chat_template, chatml_tokenizer
from hypothesis import given
from hypothesis import strategies as st
from tiny_tokenizer import tiny_tokenizer

from openjev_core.errors import StartupError
from openjev_core.prompts.chat import prompt_writer
from openjev_core.prompts.proof import prove
from openjev_core.prompts.tokenizer import tokenizer_from

WRITER = prompt_writer(chatml_tokenizer(), chat_template(CHATML))


@given(st.text(max_size=40), st.text(max_size=40).map(str.strip))
def test_parts_are_the_whole(state, words):
    prefix = WRITER.write(state)
    suffix = WRITER.suffix(words, prefix.ending)
    texts = [token for token in WRITER.control.ids if token in state or token in words]
    if not texts:  # the model's own front end would read these as tokens, which is what is prevented
        whole = f"{prefix.text} {words}{prefix.ending.text}"
        assert chatml_tokenizer().encode(whole, control=True) == [*prefix.ids, *suffix]


def test_the_proof_passes_on_the_small_model():
    assert "<|im_start|>user\nA state.<|im_end|>" in prove(WRITER).text


def test_a_tokenizer_that_joins_colon_and_space_is_refused():
    definition = json.loads(tiny_tokenizer().to_str())
    definition["model"]["vocab"][":Ġ"] = 90_000
    definition["model"]["merges"].append([":", "Ġ"])
    definition["pre_tokenizer"]["use_regex"] = False
    with pytest.raises(StartupError, match="does not end a token before a question"):
        prove(prompt_writer(tokenizer_from(definition), chat_template(CHATML)))


@frozen
class Leaking:
    """A tokenizer whose plain reading of a control token is that token."""

    inner: object = chatml_tokenizer()
    control_tokens = chatml_tokenizer().control_tokens
    vocab_size = chatml_tokenizer().vocab_size

    def encode(self, text, *, control=False):
        leaked = [self.control_tokens["</think>"]] if "</think>" in text and not control else []
        return self.inner.encode(text, control=control) + leaked

    def decode(self, ids):
        return self.inner.decode(ids)


def test_a_tokenizer_whose_plain_text_can_be_a_control_token_is_refused():
    with pytest.raises(StartupError, match="the control token '</think>' cannot be kept out of user text"):
        prove(prompt_writer(Leaking(), chat_template(CHATML)))


def test_a_tokenizer_that_reads_a_chat_differently_in_parts_is_refused():
    """A control token that eats the line break behind it, as some are declared to."""
    definition = json.loads(tiny_tokenizer().to_str())
    for token in definition["added_tokens"]:
        token["rstrip"] = True
    with pytest.raises(StartupError, match="differently when user text and control tokens are tokenized apart"):
        prove(prompt_writer(tokenizer_from(definition), chat_template(CHATML)))


def test_a_template_that_refuses_even_a_plain_message():
    with pytest.raises(StartupError, match=r"refuses a plain user message.*no chat here"):
        prompt_writer(chatml_tokenizer(), chat_template("{{ raise_exception('no chat here') }}"))


def test_a_template_that_hides_the_question():
    with pytest.raises(StartupError, match="does not show the question's turn"):
        prompt_writer(chatml_tokenizer(), chat_template("{{ messages[0].role }}"))


def test_a_template_that_is_no_jinja():
    with pytest.raises(StartupError, match="not valid Jinja"):
        prompt_writer(chatml_tokenizer(), chat_template("{% for %}"))


def test_words_may_run_into_text_of_the_ending():
    """Where the ending begins with plain text, it is tokenized with the words, as one go would."""
    source = CHATML.replace(
        "{{- '<|im_end|>\\n' }}", "{{- ('.' if message.role == 'user' else '') + '<|im_end|>\\n' }}", 1
    )
    writer = prompt_writer(chatml_tokenizer(), chat_template(source))
    prefix = writer.write("a")
    assert "." == prefix.ending.plain
    words = "Which?\n\nOptions:\nA: x\nB: YES"
    whole = chatml_tokenizer().encode(f"{prefix.text} {words}{prefix.ending.text}", control=True)
    assert whole == [*prefix.ids, *writer.suffix(words, prefix.ending)]
