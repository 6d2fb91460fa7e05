"""What is remembered of texts that were encoded: exact, and within bounds."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import field, frozen
from chatml_model import CHATML, chat_template, chatml_tokenizer

from openjev_core.prompts.alphabet import Alphabet
from openjev_core.prompts.chat import prompt_writer
from openjev_core.prompts.encoding import CHARACTER_BYTES, TOKEN_BYTES, PlainEncoder
from openjev_core.recent import ENTRY_BYTES, Recent, bytes_of


@frozen
class Counting:
    """A tokenizer that notes the plain texts that it was given."""

    tokenizer: Any
    given: list[str] = field(factory=list)

    def encode(self, text, *, control=False):
        self.given.append(text)
        return self.tokenizer.encode(text, control=control)

    def __getattr__(self, name):
        return getattr(self.tokenizer, name)


def test_a_repeated_state_and_question_are_not_tokenized_again():
    counting = Counting(chatml_tokenizer())
    writer = prompt_writer(counting, chat_template(CHATML))
    first = writer.write("A customer writes: my order never came.")
    suffix = writer.suffix("Is it late?", first.ending)
    counting.given.clear()
    again = writer.write("A customer writes: my order never came.")
    assert (first, suffix) == (again, writer.suffix("Is it late?", again.ending))
    assert [] == counting.given


def test_a_new_state_is_tokenized_alone():
    counting = Counting(chatml_tokenizer())
    writer = prompt_writer(counting, chat_template(CHATML))
    writer.suffix("Is it late?", writer.write("One state.").ending)
    counting.given.clear()
    ending = writer.write("Another state.").ending
    writer.suffix("Is it late?", ending)
    assert [True] == ["Another state." in text for text in counting.given]


@pytest.mark.parametrize("text", ["a state", "\u00e9t\u00e9 " * 50, "\U0001f642" * 300])
def test_what_is_remembered_takes_no_more_than_it_counts(text):
    counting = Counting(chatml_tokenizer())
    encoder = PlainEncoder(counting, Alphabet())
    ids = encoder.encode(text)
    counted = ENTRY_BYTES + CHARACTER_BYTES * len(text) + TOKEN_BYTES * len(ids)
    assert counted == encoder._known.held
    # Beside the text and the ids, the fixed part of the two objects.
    assert bytes_of(text, ids) <= counted


def test_memory_is_bounded():
    counting = Counting(chatml_tokenizer())
    encoder = PlainEncoder(counting, Alphabet(), Recent(10_000))
    for number in range(100):
        encoder.encode(f"{number:0100}")
    assert 10_000 - 3000 < encoder._known.held <= 10_000
    counting.given.clear()
    encoder.encode(f"{0:0100}")
    encoder.encode(f"{99:0100}")
    assert [f"{0:0100}"] == counting.given


def test_every_ending_that_a_template_writes_is_its_own():
    writer = prompt_writer(chatml_tokenizer(), chat_template(CHATML + "{{- 'About ' ~ messages[0].content ~ ':\n' }}"))
    for state in ("one", "two"):
        ending = writer.write(state).ending
        assert ending.text.endswith(f"About {state}:\nAnswer:\n")
        assert chatml_tokenizer().encode(ending.text, control=True) == [
            *chatml_tokenizer().encode(ending.plain),
            *ending.ids,
        ]
