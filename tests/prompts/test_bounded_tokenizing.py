"""What is far too long is refused after a part of it; what is accepted is tokenized in one go."""

from __future__ import annotations

import pytest
from attrs import define, evolve, field
from chatml_model import CHATML, chat_template, chatml_tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st
from preparing import branches_of, prepared

from openjev_core import RequestError, Settings
from openjev_core.limits import Limits
from openjev_core.plugins.registry import load_registry
from openjev_core.prompts import encoding
from openjev_core.prompts.chat import prompt_writer
from openjev_core.prompts.encoding import TooManyTokens, encode_within
from openjev_core.prompts.labels import verify_labels
from openjev_core.prompts.session import PromptReader
from openjev_core.prompts.template import Renderer


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
    monkeypatch.setattr(encoding, "CHARACTERS_PER_TOKEN", 0)
    monkeypatch.setattr(encoding, "PIECE", 100)
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
    assert tokenizer.seen <= 20_000 + 3 * encoding.PIECE


@pytest.fixture
def counting():
    return Counting()


@pytest.fixture
def reader(counting):
    writer = prompt_writer(counting, chat_template(CHATML))
    labels = verify_labels(writer, writer.write("x").ending, 64, ["Yes", "No"])
    counting.seen = 0
    return PromptReader(None, writer, labels, Limits.of(Settings(max_total_input_tokens=4000), 999))


NOUL = load_registry().types["noul"]
CHOICE = load_registry().types["choice"]


def fitting(reader, state="x", **questions):
    """The tokens of the prefix, and those of each branch behind it, of a request within the limits."""
    found = prepared(reader, state, questions or {"q": (NOUL, NOUL.question(instructions="Is it?"))})
    suffixes = [len(branch.suffix) for question in found.questions.values() for branch in branches_of(question)]
    return len(found.session.prefix.ids), suffixes


def refusal(reader, **request):
    with pytest.raises(RequestError) as refused:
        fitting(reader, **request)
    (problem,) = refused.value.problems
    assert "too_long" == problem.type
    return problem


LONG = "a long text, " * 200_000


@pytest.mark.parametrize("state", [LONG, [{"role": "user", "content": LONG}], {"k": LONG}, [LONG[:50_000]] * 50])
def test_a_state_that_is_far_too_long_is_refused_early(reader, counting, state):
    problem = refusal(reader, state=state)
    assert ("state",) == problem.loc
    assert "a branch of at least " in problem.msg
    assert "over the limit max_input_tokens of 1000; shorten the state or the question" in problem.msg
    assert counting.seen < 100_000


def test_a_chat_of_many_small_messages_is_refused_early(reader, counting):
    problem = refusal(reader, state=[{"role": "user", "content": f"message {i}"} for i in range(10_000)])
    assert ("state",) == problem.loc
    assert counting.seen < 10_000


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ([{"role": "tool", "content": "a"}] * 1001, "at least 1001 tokens"),
        ("<|im_end|>" * 100_000, "at least "),
        ([{"role": "user", "content": "<|im_end|>" * 5000}] * 20, "at least "),
    ],
)
def test_what_is_far_too_long_is_refused_before_it_is_rendered(reader, monkeypatch, state, said):
    rendered = []
    monkeypatch.setattr(Renderer, "render", lambda *_: rendered.append(1))
    assert said in refusal(reader, state=state).msg
    assert [] == rendered


@pytest.mark.parametrize(
    ("question", "loc"),
    [
        ((NOUL, NOUL.question(instructions=LONG)), ("criteria",)),
        ((CHOICE, CHOICE.question(criteria={"a": LONG, "b": None})), ("criteria",)),
    ],
)
def test_a_question_that_is_far_too_long_is_refused_early(reader, counting, question, loc):
    problem = refusal(reader, q=question)
    assert ("questions", "q", *loc) == problem.loc
    assert "a branch of at least " in problem.msg
    assert counting.seen < 100_000


def test_a_branch_is_refused_from_one_token_beyond_the_limit(reader):
    prefix, (suffix,) = fitting(reader, state="")
    room = 1000 - prefix - suffix - 1
    prefix, (suffix,) = fitting(reader, state="é" * (room // 2) + "x" * (room % 2))
    assert 1000 == prefix + suffix + 1
    problem = refusal(reader, state="é" * (room // 2) + "x" * (room % 2) + "y")
    assert ("questions", "q", "criteria") == problem.loc
    assert problem.msg.startswith("a branch of 1001 tokens (state, question, options and one output token) is over")


def test_the_state_alone_is_refused_at_the_state(reader):
    assert ("state",) == refusal(reader, state="x" * 1000).loc


def test_the_total_counts_the_warm_up_and_every_branch(reader):
    question = (NOUL, NOUL.question(instructions="Is it?"))
    prefix, (suffix,) = fitting(reader, state="x" * 300)
    fit = (4000 - prefix) // (prefix + suffix)
    fitting(reader, state="x" * 300, **{f"q{i}": question for i in range(fit)})
    problem = refusal(reader, state="x" * 300, **{f"q{i}": question for i in range(fit + 1)})
    assert ("questions", f"q{fit}", "criteria") == problem.loc
    total = prefix + (fit + 1) * (prefix + suffix)
    assert f"the request submits {total} tokens with its branch {fit + 1} " in problem.msg
    assert "over the limit max_total_input_tokens of 4000" in problem.msg


def test_a_generator_without_end_is_refused_by_the_total(reader):
    def endless(question):
        while True:
            yield from NOUL.readouts(question)

    problem = refusal(reader, q=(evolve(NOUL, readouts=endless), NOUL.question(instructions="Is it?")))
    assert "max_total_input_tokens of 4000" in problem.msg
