"""Labels are verified on the real tokenizer after the real ending; what is missing is listed."""

from __future__ import annotations

import json

import pytest
from chatml_model import CHATML, PLAIN, chat_template, chatml_tokenizer
from tiny_tokenizer import tiny_tokenizer

from openjev_core.errors import StartupError
from openjev_core.prompts.chat import prompt_writer
from openjev_core.prompts.labels import candidates, verify_labels
from openjev_core.prompts.tokenizer import tokenizer_from


def labels_of(writer, count, own=()):
    return verify_labels(writer, writer.write("x").ending, count, own)


def test_letters_come_first_then_pairs():
    texts = list(candidates())
    assert 26 + 26 * 26 == len(texts) == len(set(texts))
    assert ["A", "Z", "AA", "AB", "ZZ"] == [texts[i] for i in (0, 25, 26, 27, -1)]


def test_each_is_one_token_that_says_what_it_says(writer):
    labels = labels_of(writer, 255, ["Yes", "No"])
    texts, ids = zip(*labels.by_position, strict=True)
    assert tuple(candidates())[:255] == texts
    assert 255 == len(set(ids))
    assert list(texts) == [chatml_tokenizer().decode([token]) for token in ids]
    assert {"Yes": chatml_tokenizer().encode("Yes")[0], "No": chatml_tokenizer().encode("No")[0]} == labels.own


def test_too_few_are_told_with_the_setting_and_what_is_missing(writer):
    with pytest.raises(StartupError) as refused:
        labels_of(writer, 703)
    message = str(refused.value)
    assert "has 702 labels of one token after the prompt's ending, and max_answers asks for 703" in message
    assert "set OPENJEV_MAX_ANSWERS to 702 or less" in message


@pytest.fixture
def without_pairs():
    """A tokenizer without tokens for AB and AC."""
    definition = json.loads(tiny_tokenizer().to_str())
    model = definition["model"]
    model["merges"] = [pair for pair in model["merges"] if pair not in (["A", "B"], ["A", "C"], "A B", "A C")]
    del model["vocab"]["AB"], model["vocab"]["AC"]
    return prompt_writer(tokenizer_from(definition), chat_template(PLAIN))


def test_pairs_that_are_two_tokens_are_passed_over(without_pairs):
    texts = [text for text, _ in labels_of(without_pairs, 30).by_position]
    assert ["Z", "AA", "AD", "AE", "AF"] == texts[25:]
    with pytest.raises(StartupError, match="AB: it is 2 tokens; AC: it is 2 tokens"):
        labels_of(without_pairs, 701)


OWN = [
    ("Maybe", "it is 5 tokens"),
    ("", "it is 0 tokens"),
    ("<think>", "it is 7 tokens"),
    ("é", "it is 2 tokens"),
]


@pytest.mark.parametrize(("label", "said"), OWN)
def test_a_types_own_label_that_will_not_do_is_told(writer, label, said):
    labels = labels_of(writer, 2, ["Yes", label])
    assert {label: said} == labels.refused
    assert ["Yes"] == list(labels.own)


def test_a_label_that_merges_with_what_stands_before_it_is_none():
    definition = json.loads(tiny_tokenizer().to_str())
    definition["model"]["vocab"]["ĊA"] = 90_000
    definition["model"]["merges"].append(["Ċ", "A"])
    definition["pre_tokenizer"]["use_regex"] = False
    writer = prompt_writer(tokenizer_from(definition), chat_template(CHATML))
    assert "B" == labels_of(writer, 2).by_position[0][0]
    assert {"A": "it merges with the text before it"} == labels_of(writer, 2, ["A"]).refused


class Odd:
    """The small tokenizer, with one token that decodes to something else or lies outside."""

    def __init__(self, **changes):
        self.inner = chatml_tokenizer()
        self.control_tokens = self.inner.control_tokens
        self.vocab_size = changes.get("vocab_size", self.inner.vocab_size)
        self.decoded = changes.get("decoded", {})

    def encode(self, text, *, control=False):
        return self.inner.encode(text, control=control)

    def decode(self, ids):
        text = self.inner.decode(ids)
        return self.decoded.get(text, text)


def test_a_label_must_decode_to_itself():
    writer = prompt_writer(Odd(decoded={"Yes": "yes"}), chat_template(CHATML))
    assert {"Yes": "its token decodes to 'yes'"} == labels_of(writer, 2, ["Yes"]).refused


def test_a_label_must_lie_in_the_vocabulary():
    (token,) = chatml_tokenizer().encode("Yes")
    writer = prompt_writer(Odd(vocab_size=token), chat_template(CHATML))
    assert {"Yes": "its token is outside the vocabulary"} == labels_of(writer, 2, ["Yes"]).refused
