"""Text from the memory of pieces: token for token what the library gives, for every expression that is understood."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from openjev_core.prompts import pieces as memory
from openjev_core.prompts.pieces import cutter, expression_of, pieces_of
from openjev_core.recent import bytes_of

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
EXPRESSIONS = {
    "with marks": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "digits by three": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "byte level": None,
}
# Words, code, tables and blank lines: a corpus whose merges reach to the edges of pieces of every kind.
CORPUS = [
    Path(__file__).read_text("utf-8"),
    "Don't. I'LL  say:\n\n\t'tis 12345, isn't it?\r\n" * 50,
    "été, naïve; 中文 " * 50,
]

KINDS = st.sampled_from(
    ["abcZ", "'sStTrevmld", " \n\r\t\x0b\x0c", "0123", "!-.,(){}#", "\x00\x1c\x1f\x7f", "é\u0301中\x85\u2019🙂"]
)
TEXTS = st.lists(KINDS.flatmap(st.sampled_from), max_size=40).map("".join)


def trained(expression, normalizer=None):
    tokenizer = Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=expression is None)
    split = [] if expression is None else [pre_tokenizers.Split(Regex(expression), "isolated")]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*split, byte_level]) if split else byte_level
    tokenizer.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=2000, initial_alphabet=alphabet))
    return tokenizer


def with_memory(tokenizer):
    return pieces_of(json.loads(tokenizer.to_str()), tokenizer)


def ids(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


@pytest.fixture(scope="module", params=EXPRESSIONS)
def tokenizer(request):
    return trained(EXPRESSIONS[request.param], normalizers.NFC())


@pytest.fixture(scope="module")
def known(tokenizer):
    return with_memory(tokenizer)


@given(TEXTS)
@settings(max_examples=500)
def test_any_text(tokenizer, known, text):
    assert ids(tokenizer, text) == known.encode(text)


@pytest.mark.parametrize("text", [*CORPUS, "", "\n", "a\n\nb", "a\n \nb", "é\na", "word " * 3000, "x" * 5000])
def test_a_text_that_is_new_and_one_that_comes_again(tokenizer, known, text):
    wanted = ids(tokenizer, text)
    assert [wanted, wanted] == [known.encode(text), known.encode(text)]


class Counting:
    """A library that notes what it is asked, of its model too."""

    def __init__(self, library):
        self.library = library
        self.asked = []

    @property
    def model(self):
        return self

    def tokenize(self, piece):
        assert len(piece) <= memory.LONGEST_PIECE, "it would hold up every other thread"
        self.asked.append(piece.replace("Ġ", " "))
        return self.library.model.tokenize(piece)

    def encode_batch_fast(self, texts, *, add_special_tokens):
        self.asked.extend(texts)
        return self.library.encode_batch_fast(texts, add_special_tokens=add_special_tokens)


@pytest.fixture
def counted():
    tokenizer = trained(None)
    library = Counting(tokenizer)
    pieces = pieces_of(json.loads(tokenizer.to_str()), library)
    library.asked.clear()
    return pieces, library


def test_known_pieces_are_not_asked_for(counted):
    pieces, library = counted
    pieces.encode("one two one")
    library.asked.clear()
    text = "one two two one one"
    assert ids(library.library, text) == pieces.encode(text)
    assert [] == library.asked


def test_of_a_text_with_few_new_pieces_these_alone_are_asked_for(counted):
    pieces, library = counted
    pieces.encode(" a b c")
    library.asked.clear()
    text = " a b c new a b c"
    assert ids(library.library, text) == pieces.encode(text)
    assert [" new"] == library.asked


def test_words_that_are_not_ascii_are_asked_for_once_and_no_others(counted):
    pieces, library = counted
    pieces.encode(" an day of rain" * 3)
    library.asked.clear()
    text = " an day of rain an été day of rain an naïve été day of rain an day of rain"
    for _ in range(2):
        assert ids(library.library, text) == pieces.encode(text)
    assert [" an été day", " naïve été day"] == sorted(library.asked)


def test_a_text_of_many_new_pieces_is_asked_for_whole_and_learned_in_part(counted, monkeypatch):
    monkeypatch.setattr(memory, "LEARNED_BESIDE", 3)
    pieces, library = counted
    text = " a b c d e"
    assert ids(library.library, text) == pieces.encode(text)
    assert (4, text) == (len(library.asked), library.asked[-1])


def test_a_piece_that_is_too_long_is_not_kept(counted):
    pieces, library = counted
    text = " a" * 5 + " " + "x" * 100
    pieces.encode(text)
    library.asked.clear()
    for _ in range(2):
        assert ids(library.library, text) == pieces.encode(text)
    assert [" " + "x" * 100] * 2 == library.asked


@pytest.mark.parametrize("words", [" a" * 5, ""])
def test_a_long_piece_is_left_to_the_library_which_holds_up_no_other_thread(counted, words):
    pieces, library = counted
    text = f"{words} {'x' * 10_000}"
    assert ids(library.library, text) == pieces.encode(text)
    assert 1 == sum("x" * 10_000 in asked for asked in library.asked)


def test_learning_starts_over_when_there_is_no_more_room(counted, monkeypatch):
    monkeypatch.setattr(memory, "CAPACITY", 4 * (memory.PIECE_BYTES + 2 * memory.CHARACTER_BYTES + memory.TOKEN_BYTES))
    pieces, library = counted
    pieces.encode(" a b c d")
    text = " a b c d a b c d new"
    assert ids(library.library, text) == pieces.encode(text)
    library.asked.clear()
    pieces.encode(" new new new")
    assert [] == library.asked
    pieces.encode(" a a a")
    assert [" a"] == library.asked


def test_what_is_known_takes_no_more_than_is_counted(counted, monkeypatch):
    """The longest pieces of the rarest characters are what fills a memory."""
    monkeypatch.setattr(memory, "CAPACITY", 100_000)
    pieces, _ = counted
    for number in range(0x4E00, 0x4E00 + 400):
        pieces.encode(f" a {chr(number) * 40} b")
        assert pieces._held <= 100_000
        assert bytes_of(pieces._known) <= pieces._held + sys.getsizeof({})
    assert 0 < len(pieces._known) < 400


def test_a_tokenizer_that_does_not_keep_to_its_expression_has_none():
    """Whatever the reason: the library is compared with, not trusted to be what its definition says."""
    definition = json.loads(trained(None).to_str())
    assert pieces_of(definition, trained(EXPRESSIONS["with marks"])) is None


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"type": "Unigram"}},
        {"model": {"type": "BPE", "dropout": 0.1}},
        {"normalizer": {"type": "Lowercase"}},
        {"pre_tokenizer": None},
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}},
        {"pre_tokenizer": {"type": "Metaspace"}},
    ],
)
def test_what_does_more_than_cut_is_not_understood(change):
    definition = json.loads(trained(None).to_str())
    assert expression_of(definition) is not None
    assert expression_of({**definition, **change}) is None


def test_an_expression_whose_pieces_reach_across_words_has_none():
    assert with_memory(trained(r"\n?#+|[^\n#]+|\n")) is None


@pytest.mark.parametrize(
    "expression",
    [
        r"\p{Lu}+|\s+",
        r"(a|b)+",
        r"[a-",
        r"(?<=x)\s",
        r"[^x]|x(?!yz)",
        r"a(?!bc)|[ab]+|[^ab]",
        r"\bab|[a-z]+|[^a-z]",
        r"\p{L}+|\s+$|[^\p{L}]",
        r"^a|[^a]|a",
    ],
)
def test_an_expression_that_is_not_understood(expression):
    assert cutter(expression) is None


@pytest.mark.parametrize("expression", [r"\(+|[^(]", r"\$\^|[\^$]|[^$^]", r"\s+(?!\S)|\s|\S+"])
def test_escapes_are_no_part_of_an_expression_that_looks_around(expression):
    assert cutter(expression) is not None
