"""Characters for which a model has no token are refused: they are not left out, and become no control token."""

from __future__ import annotations

import asyncio
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_backend import ScriptedBackend
from tiny_tokenizer import TEMPLATE, tiny_tokenizer

from openjev_core import RequestError
from openjev_core.backends.protocol import ChatTemplate, LoadedModel
from openjev_core.plugins.registry import load_registry
from openjev_core.prompts.alphabet import Alphabet, NoToken, alphabet_of, probes
from openjev_core.prompts.tokenizer import tokenizer_from
from openjev_core.settings import Settings
from openjev_core.testing.scripted import engine_on

MISSING = b"\x04\x13\x9f\xf1"
"""End of transmission, a device control, a byte in the midst of characters, the first one of an empty plane."""


def lacking(missing, *, unknown=None):
    """The tiny tokenizer without these bytes; ``unknown`` is the token that stands in for them."""
    definition = json.loads(tiny_tokenizer().to_str())
    byte_of = {char: byte for byte, char in byte_letters().items()}
    vocabulary = definition["model"]["vocab"]
    # Ids stay dense: another word takes the place of what is missing.
    kept = {f"word{id_}" if byte_of.get(token, -1) in set(missing) else token: id_ for token, id_ in vocabulary.items()}
    kept |= {token["content"]: token["id"] for token in definition["added_tokens"]}
    definition["model"] |= {"vocab": kept, "unk_token": unknown}
    return tokenizer_from(definition)


def byte_letters():
    """Byte to the letter by which a byte-level tokenizer's vocabulary writes it."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {byte: chr(byte) for byte in shown}
    return letters | {byte: chr(256 + n) for n, byte in enumerate(b for b in range(256) if b not in letters)}


def test_the_probes_hold_every_byte_that_text_has():
    written = [char.encode() for char in probes()]
    assert {*range(0xF5)} - {0xC0, 0xC1} == {byte for char in written for byte in char}
    assert [] == [char for char in probes() if unicodedata.normalize("NFC", f"0{char}") != f"0{char}"]


def test_a_tokenizer_with_every_byte_lacks_nothing():
    assert Alphabet(b"") == alphabet_of(tokenizer_from(json.loads(tiny_tokenizer().to_str())))


@pytest.mark.parametrize("unknown", [None, "<|im_end|>"])
@pytest.mark.parametrize("missing", [b"\x00", b"\xf4", b"\xc2", MISSING])
def test_missing_bytes_are_found(missing, unknown):
    assert set(missing) == set(alphabet_of(lacking(missing, unknown=unknown)).missing)


@given(st.text(max_size=6) | st.text("\x04\x13\u00df\u4e9f\U00041234ab", max_size=4))
def test_what_is_refused_is_what_the_tokenizer_loses(text):
    tokenizer = lacking(MISSING)
    try:
        Alphabet(MISSING).check(text)
        refused = ""
    except NoToken as error:
        refused = error.character
    assert (refused == "") == (text == tokenizer.decode(tokenizer.encode(text)))
    assert refused in text


@pytest.fixture(params=[None, "<|im_end|>"])
def engine(request):
    tokenizer = lacking(MISSING, unknown=request.param)
    model = LoadedModel(
        backend=ScriptedBackend(), tokenizer=tokenizer, template=ChatTemplate(TEMPLATE, "", ""), public_name="Mine"
    )
    return engine_on(model, Settings(max_answers=20), load_registry())


def ask(engine, state="S.", **question):
    asked = {"type": "choice", "criteria": {"a": None, "b": None}, **question}
    return asyncio.run(engine.evaluate(state=state, questions={"q": asked}))


def turn(content):
    return {"role": "user", "content": content}


@pytest.mark.parametrize(
    ("state", "question", "loc", "character"),
    [
        ("one\x04two", {}, ("state",), "U+0004"),
        ({"plane": "\U00041234"}, {}, ("state",), "U+41234"),
        ([turn("fine"), turn("\x13")], {}, ("state", 1), "U+0013"),
        ({"messages": [turn("\u4e9f")]}, {}, ("state", "messages", 0), "U+4E9F"),
        ("S.", {"instructions": "Is it\x04?"}, ("questions", "q"), "U+0004"),
        ("S.", {"criteria": {"a": "\x13", "b": None}}, ("questions", "q"), "U+0013"),
        ("S.", {"criteria": {"a\x13": None, "b": None}}, ("questions", "q"), "U+0013"),
    ],
)
def test_such_a_character_is_refused_before_any_inference(engine, state, question, loc, character):
    with pytest.raises(RequestError) as caught:
        ask(engine, state, **question)
    (problem,) = caught.value.problems
    assert (loc, "no_token") == (problem.loc, problem.type)
    assert f"the model has no token for the character {character}, so it cannot be shown" in problem.msg
    assert [] == engine.reader.backend.prefixes


def test_where_the_model_does_not_read_it_it_is_nobodys_business(engine):
    ask(engine, criteria={"a\x13": "one", "b": "two"})
    ask(engine, state={"escaped": "\x04"})
