"""What is far too long is refused after a part of it; what is accepted is tokenized in one go."""

from __future__ import annotations

import pytest
from attrs import define, evolve, field
from chatml_model import CHATML, chat_template, chatml_tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st

from openjev_core import RequestError
from openjev_core.plugins.registry import load_registry
from openjev_core.prompts import bounded
from openjev_core.prompts.bounded import TooManyTokens, encode_within
from openjev_core.prompts.budget import Bounds
from openjev_core.prompts.chat import prompt_writer
from openjev_core.prompts.compiler import Compiler
from openjev_core.prompts.labels import verify_labels


@define
class Counting:
    """The small tokenizer, counting the characters that it was given."""

    seen: int = 0
    calls: list = field(factory=list)
    inner: object = field(factory=chatml_tokenizer)
    control_tokens = chatml_tokenizer().control_tokens
    vocab_size = chatml_tokenizer().vocab_size

    def encode(self, text, *, control=False):
        self.seen += len(text)
        self.calls.append(text)
        return self.inner.encode(text, control=control)

    def decode(self, ids):
        return self.inner.decode(ids)


@given(st.lists(st.sampled_from(["a", "YesNo", " ", "\n", "é🙂", "AB", "...", "12"]), min_size=1, max_size=50))
@settings(max_examples=12)
def test_the_bound_is_never_above_the_count(parts):
    text = ("".join(parts) * 25_000)[:25_000]
    tokenizer = chatml_tokenizer()
    whole = tokenizer.encode(text)
    with pytest.raises(TooManyTokens) as refused:
        encode_within(tokenizer, text, 1)
    assert 1 < refused.value.at_least <= len(whole)
    assert whole == encode_within(tokenizer, text, len(whole))


def test_what_fits_is_not_refused_for_the_tokens_that_cuts_add(monkeypatch):
    monkeypatch.setattr(bounded, "CHARACTERS_PER_TOKEN", 0)
    monkeypatch.setattr(bounded, "PIECE", 100)
    text = "Yes" * 1000  # a cut inside of one makes two or three tokens of it
    assert 1000 == len(encode_within(chatml_tokenizer(), text, 1000))


def test_what_is_accepted_is_tokenized_once_and_whole():
    tokenizer = Counting()
    text = "word " * 5000
    assert chatml_tokenizer().encode(text) == encode_within(tokenizer, text, 25_000)
    assert [text] == tokenizer.calls


def test_what_is_far_too_long_is_not_read_to_its_end():
    tokenizer = Counting()
    with pytest.raises(TooManyTokens):
        encode_within(tokenizer, "word " * 1_000_000, 20_000)
    assert tokenizer.seen <= 20_000 + 3 * bounded.PIECE


@pytest.fixture
def counting():
    return Counting()


@pytest.fixture
def compiler(counting):
    writer = prompt_writer(counting, chat_template(CHATML))
    labels = verify_labels(writer, writer.write("x").ending, 64, ["Yes", "No"])
    counting.seen = 0
    return Compiler(writer, labels, Bounds(max_answers=64, max_input_tokens=1000, max_total_input_tokens=4000))


NOUL = load_registry().types["noul"]
CHOICE = load_registry().types["choice"]


def compiled(compiler, state="x", **questions):
    return compiler.compile(state, questions or {"q": (NOUL, NOUL.question(instructions="Is it?"))})


def refusal(compiler, **request):
    with pytest.raises(RequestError) as refused:
        compiled(compiler, **request)
    (problem,) = refused.value.problems
    assert "too_long" == problem.type
    return problem


LONG = "a long text, " * 200_000


@pytest.mark.parametrize("state", [LONG, [{"role": "user", "content": LONG}], {"k": LONG}, [LONG[:50_000]] * 50])
def test_a_state_that_is_far_too_long_is_refused_early(compiler, counting, state):
    problem = refusal(compiler, state=state)
    assert ("state",) == problem.loc
    assert "a branch of at least " in problem.msg
    assert "over the limit max_input_tokens of 1000; shorten the state or the question" in problem.msg
    assert counting.seen < 100_000


def test_a_chat_of_many_small_messages_is_refused_early(compiler, counting):
    problem = refusal(compiler, state=[{"role": "user", "content": f"message {i}"} for i in range(10_000)])
    assert ("state",) == problem.loc
    assert counting.seen < 10_000


@pytest.mark.parametrize(
    ("question", "loc"),
    [
        ((NOUL, NOUL.question(instructions=LONG)), ("criteria",)),
        ((CHOICE, CHOICE.question(criteria={"a": LONG, "b": None})), ("criteria",)),
    ],
)
def test_a_question_that_is_far_too_long_is_refused_early(compiler, counting, question, loc):
    problem = refusal(compiler, q=question)
    assert ("questions", "q", *loc) == problem.loc
    assert "a branch of at least " in problem.msg
    assert counting.seen < 100_000


def test_a_branch_is_refused_from_one_token_beyond_the_limit(compiler):
    empty = compiled(compiler, state="")
    room = 1000 - len(empty.prefix.ids) - len(empty.questions[0].branches[0].suffix) - 1
    longest = compiled(compiler, state="é" * (room // 2) + "x" * (room % 2))
    assert 1000 == len(longest.prefix.ids) + len(longest.questions[0].branches[0].suffix) + 1
    problem = refusal(compiler, state="é" * (room // 2) + "x" * (room % 2) + "y")
    assert ("questions", "q", "criteria") == problem.loc
    assert problem.msg.startswith("a branch of 1001 tokens (state, question, options and one output token) is over")


def test_the_state_alone_is_refused_at_the_state(compiler):
    assert ("state",) == refusal(compiler, state="x" * 1000).loc


def test_the_total_counts_the_warm_up_and_every_branch(compiler):
    question = (NOUL, NOUL.question(instructions="Is it?"))
    one = compiled(compiler, state="x" * 300)
    prefix, suffix = len(one.prefix.ids), len(one.questions[0].branches[0].suffix)
    fit = (4000 - prefix) // (prefix + suffix)
    compiled(compiler, state="x" * 300, **{f"q{i}": question for i in range(fit)})
    problem = refusal(compiler, state="x" * 300, **{f"q{i}": question for i in range(fit + 1)})
    assert ("questions", f"q{fit}", "criteria") == problem.loc
    total = prefix + (fit + 1) * (prefix + suffix)
    assert f"the request submits {total} tokens with its branch {fit + 1} " in problem.msg
    assert "over the limit max_total_input_tokens of 4000" in problem.msg


def test_a_generator_without_end_is_refused_by_the_total(compiler):
    def endless(question):
        while True:
            yield from NOUL.readouts(question)

    problem = refusal(compiler, q=(evolve(NOUL, readouts=endless), NOUL.question(instructions="Is it?")))
    assert "max_total_input_tokens of 4000" in problem.msg
