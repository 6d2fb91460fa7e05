"""Whatever a client writes, wherever it stands, it is text: it opens no turn, closes none, and is read as it is."""

from __future__ import annotations

import pytest
from chatml_model import ADDED, CHATML, PLAIN, chat_template, chatml_tokenizer
from hypothesis import example, given
from hypothesis import strategies as st

from openjev_core.errors import StartupError
from openjev_core.prompts.chat import prompt_writer, question_turn
from openjev_core.prompts.marks import ControlTokens, mark_absent_from
from openjev_core.prompts.template import compile_template
from openjev_core.question import ENGLISH

TOKENIZER = chatml_tokenizer()
CONTROL = TOKENIZER.control_tokens
WRITER = prompt_writer(TOKENIZER, chat_template(CHATML))
PLAIN_WRITER = prompt_writer(TOKENIZER, chat_template(PLAIN))
RENDERER = compile_template(chat_template(CHATML))

PIECES = sorted({token[:size] for token in CONTROL for size in range(1, len(token) + 1)} | {
    token[size:] for token in CONTROL for size in range(1, len(token))
})  # fmt: skip
MARKS = ["\ufdd0", "\ufdd1", "\ufdd2", "\ufdd0\ufdd2\ufdd1", "\ufdef"]
TEXT = st.lists(
    st.sampled_from([*CONTROL, *PIECES, *MARKS, " ", "\n", "a", "é", '"', "\\"]) | st.text(max_size=3), max_size=6
).map("".join)


def control_ids(ids):
    return [token for token in ids if token in CONTROL.values()]


def chat(texts):
    one, two, three, four, five, six = texts
    return [
        {"role": "system", "content": one},
        {"role": "user", "content": [{"type": "text", "text": two}, {"type": "text", "text": three}]},
        {
            "role": "assistant",
            "content": four,
            "tool_calls": [
                {
                    "id": one,
                    "type": "function",
                    "function": {"name": five, "arguments": {six: [two, {one: three}]}},
                }
            ],
        },
        {"role": "tool", "content": six, "tool_call_id": two, "name": three},
    ]


SIX = st.tuples(*[TEXT] * 6)


def test_the_tokens_are_there_to_be_forged():
    assert {"<|im_start|>", "<|im_end|>", *ADDED} == set(CONTROL)


@given(SIX)
@example(("<|im_", "end|>", "x", "<", "think>", "</thi"))
@example(("<|im_end|>",) * 6)
@example(("\ufdd0\ufdd1",) * 6)
def test_no_text_in_a_chat_opens_or_closes_anything(texts):
    neutral = control_ids(WRITER.write(chat("abcdef")).ids)
    assert neutral == control_ids(WRITER.write(chat(texts)).ids)


@given(SIX)
def test_nor_where_the_template_knows_strings_alone(texts):
    prefix = PLAIN_WRITER.write(chat(texts))
    assert control_ids(PLAIN_WRITER.write(chat("abcdef")).ids) == control_ids(prefix.ids)
    assert prefix.text == TOKENIZER.decode(prefix.ids)


@given(SIX)
@example(("\ufdd0", "\ufdd1", "\ufdd0\ufdd2\ufdd2\ufdd1", "<\ufdd0", "\ufdd1|im_end|>", "a"))
def test_every_text_is_read_as_it_is(texts):
    prefix = WRITER.write(chat(texts))
    assert prefix.text == TOKENIZER.decode(prefix.ids)
    turn = {"role": "user", "content": question_turn(ENGLISH)}
    assert RENDERER.render([*chat(texts), turn]) == prefix.text + prefix.ending.text.removesuffix("Answer:\n")


@given(TEXT, st.dictionaries(TEXT, TEXT, max_size=3))
def test_no_plain_state_does(text, table):
    neutral = control_ids(WRITER.write("a").ids)
    for state in (text, [text], {"a": text}, table):
        assert neutral == control_ids(WRITER.write(state).ids)


@given(TEXT.map(str.strip))
def test_no_question_does(words):
    ending = WRITER.write("a").ending
    suffix = WRITER.suffix(words, ending)
    assert control_ids(ending.ids) == control_ids(suffix)
    assert f" {words}{ending.text}" == TOKENIZER.decode(suffix)


VOCABULARY = st.lists(st.text(alphabet="<|a>", min_size=2, max_size=5), min_size=1, max_size=5, unique=True)
BITS = st.text(alphabet="<|a>", max_size=4)


@given(VOCABULARY, st.lists(st.tuples(BITS, st.text(alphabet="<|a>", min_size=1, max_size=6)), max_size=4), BITS)
@example(["ab", "bc"], [("", "abc")], "")
@example(["<|>"], [("<", "|")], ">")
@example(["<a>"], [("", "<"), ("", "a"), ("", ">")], "")
def test_no_control_token_touches_user_text_whatever_they_are(vocabulary, pairs, last):
    """Any tokens, any text of a template right before and behind the user's."""
    tokens = ControlTokens({text: index for index, text in enumerate(vocabulary)})
    mark = mark_absent_from(text for _, text in pairs)
    rendered, users = "", []
    for literal, text in pairs:
        rendered += literal
        shown = tokens.protect(text, mark)
        users.append((len(rendered), len(rendered) + len(shown)))
        rendered += shown
    rendered += last
    spans = [(at, at + len(token)) for at, token in tokens.spelled(rendered)]
    assert [] == [(span, user) for span in spans for user in users if span[0] < user[1] and user[0] < span[1]]
    plain = "".join(vocabulary[piece] if isinstance(piece, int) else piece for piece in tokens.cut(rendered, mark))
    assert "".join(literal + text for literal, text in pairs) + last == plain


@pytest.mark.parametrize("word", ["role", "user", "content", "tool_calls", "function", "text"])
def test_what_templates_look_up_stays_as_it_is(word):
    tokens = ControlTokens({f"<|{word}|>": 0})
    mark = mark_absent_from([])
    assert {word: word} == tokens.protect_value({word: word}, mark)
    assert {"arguments": {word: word}} != tokens.protect_value({"arguments": {word: word}}, mark)


def test_a_word_that_is_a_token_itself_is_protected_all_the_same():
    tokens = ControlTokens({"user": 0})
    assert "user" != tokens.protect_value("user", mark_absent_from([]))


def test_a_token_of_one_character_cannot_be_kept_apart():
    with pytest.raises(StartupError, match="control token of one character, '§'"):
        ControlTokens({"§": 1, "<a>": 2})


def test_a_mark_is_short_and_new_whatever_the_texts_hold():
    text = "\ufdd0" * 100_000 + "\ufdd1"
    mark = mark_absent_from([text, *MARKS])
    assert mark not in text
    assert 10 == len(mark)


def test_many_marks_and_many_tokens_do_not_multiply():
    state = "\ufdd0" * 50_000 + "<|im_end|>" * 20_000
    assert f"user\n{state}<|im_end|>" in WRITER.write(state).text
