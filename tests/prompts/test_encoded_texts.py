"""What is remembered of texts that were encoded: exact, and within bounds."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen
from chatml_model import CHATML, chat_template, chatml_tokenizer

from openjev_core.prompts.chat import prompt_writer
from openjev_core.prompts.encoded import CHARACTER_BYTES, TOKEN_BYTES, Encoded

TEXT_BYTES = 10 * CHARACTER_BYTES + 2 * TOKEN_BYTES
"""Of a text of ten characters and two tokens."""


def text(number):
    return f"{number:010}"


def test_ids_come_back_for_the_same_text_alone():
    known = Encoded()
    known.keep("a state", (1, 2))
    assert (1, 2) == known.get("a state")
    assert known.get("a state ") is None


def test_the_least_recently_used_go_first():
    known = Encoded(3 * TEXT_BYTES)
    for number in range(3):
        known.keep(text(number), (number, number))
    known.get(text(0))
    known.keep(text(3), (3, 3))
    assert [(0, 0), None, (2, 2), (3, 3)] == [known.get(text(number)) for number in range(4)]


def test_keeping_a_text_twice_counts_once():
    known = Encoded(2 * TEXT_BYTES)
    for number in (0, 0, 0, 1):
        known.keep(text(number), (number, number))
    assert [(0, 0), (1, 1)] == [known.get(text(0)), known.get(text(1))]


def test_a_text_over_the_bounds_pushes_nothing_out():
    known = Encoded(TEXT_BYTES)
    known.keep(text(0), (0, 0))
    known.keep(text(1), (1, 1, 1))
    assert [(0, 0), None] == [known.get(text(0)), known.get(text(1))]


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


def test_an_ending_is_worked_out_once_for_each_that_the_template_writes():
    writer = prompt_writer(chatml_tokenizer(), chat_template(CHATML + "{{- 'About ' ~ messages[0].content ~ ':\n' }}"))
    one, two, again = (writer.write(state).ending for state in ("one", "two", "one"))
    for state, ending in (("one", one), ("two", two)):
        assert ending.text.endswith(f"About {state}:\nAnswer:\n")
        assert chatml_tokenizer().encode(ending.text, control=True) == [
            *chatml_tokenizer().encode(ending.plain),
            *ending.ids,
        ]
    assert one is again
