"""The production model's tokenizer and chat template, from a folder beside the repository that builds them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prompt_cases import CASES, TRANSCRIPT, model_of, written
from tokenizers import Tokenizer

from openjev_core import RequestError
from openjev_core.errors import StartupError
from openjev_core.prompts.encoding import TooManyTokens, encode_within
from openjev_core.prompts.labels import verify_labels
from openjev_core.prompts.tokenizer import load_tokenizer

pytestmark = pytest.mark.integration

BUILDER = Path(__file__).parents[3] / "shared" / "qwen3.6" / "make_model_dir.py"


@pytest.fixture(scope="module")
def qwen_folder(tmp_path_factory):
    if not BUILDER.exists():
        pytest.skip(f"{BUILDER} is not there")
    folder = tmp_path_factory.mktemp("qwen")
    subprocess.run([sys.executable, BUILDER, folder], check=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def qwen(qwen_folder):
    return load_tokenizer(str(qwen_folder))


@pytest.fixture(scope="module")
def qwen_library(qwen_folder):
    """The library's tokenizer with every added token taken out, as text is read."""
    definition = json.loads((qwen_folder / "tokenizer.json").read_text("utf-8"))
    return Tokenizer.from_str(json.dumps({**definition, "added_tokens": [], "post_processor": None}))


@pytest.fixture(scope="module")
def reader(qwen):
    return model_of(*qwen, 255)


def test_there_are_588_labels_of_one_token(reader):
    writer = reader.writer
    ending = writer.write("x").ending
    assert 588 == len(verify_labels(writer, ending, 588, ["Yes", "No"]).by_position)
    with pytest.raises(StartupError, match="set OPENJEV_MAX_ANSWERS to 588 or less"):
        verify_labels(writer, ending, 589, [])


@pytest.mark.parametrize("case", CASES)
def test_prompt(reader, case, pinned):
    text, ids = written(reader, *CASES[case])
    assert pinned(name="text") == text
    assert pinned(name="ids") == ids


@given(st.text(max_size=40), st.text(max_size=40).map(str.strip))
@example("\u0301", "\u0301")
@settings(max_examples=300)
def test_parts_are_the_whole(reader, state, words):
    writer = reader.writer
    prefix = writer.write(state)
    whole = writer.tokenizer.encode(f"{prefix.text} {words}{prefix.ending.text}", control=True)
    if not any(token in state or token in words for token in writer.control.ids):
        assert whole == [*prefix.ids, *writer.suffix(words, prefix.ending)]


def test_tokens_that_are_not_marked_special_are_text_in_user_text(reader):
    """``<think>`` and its like are added tokens without that mark."""
    writer = reader.writer
    assert {"<think>", "</think>", "<tool_call>", "<|im_end|>"} <= set(writer.control.ids)
    neutral = [t for t in writer.write("x").ids if t in set(writer.control.ids.values())]
    state = "".join(writer.control.ids)
    prefix = writer.write(state)
    assert neutral == [t for t in prefix.ids if t in set(writer.control.ids.values())]
    assert state in writer.tokenizer.decode(prefix.ids)


def test_an_assistants_reasoning_is_shown_where_it_is_data(reader):
    chat = [*TRANSCRIPT[:2], {"role": "assistant", "content": "<think>a</think>b"}, {"role": "user", "content": "c"}]
    assert "<|im_start|>assistant\n<think>a</think>b<|im_end|>" in reader.writer.write(chat).text


REFUSED = [
    ([{"role": "user", "content": "a"}, {"role": "system", "content": "b"}], ("state",), "System message"),
    ([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}], ("state", 0, "content", 0), "text only"),
]


@pytest.mark.parametrize(("state", "loc", "said"), REFUSED)
def test_what_its_template_does_not_take(reader, state, loc, said):
    with pytest.raises(RequestError) as refused:
        reader.writer.write(state)
    (problem,) = refused.value.problems
    assert loc == problem.loc
    assert said in problem.msg


@pytest.mark.parametrize("text", ["a" * 300_000, "Word, " * 60_000, "é🙂" * 80_000, "1" * 200_000, "\n\n" * 100_000])
def test_the_cheap_bound_is_never_above_the_count(qwen, text):
    tokenizer, _ = qwen
    whole = tokenizer.encode(text)
    with pytest.raises(TooManyTokens) as refused:
        encode_within(tokenizer, text, 1)
    assert refused.value.at_least <= len(whole)
    assert whole == encode_within(tokenizer, text, len(whole))


@given(st.text(min_size=20, max_size=400), st.integers(1, 399))
@settings(max_examples=300)
def test_a_cut_adds_few_tokens(qwen, text, at):
    """What the bound's margin rests on."""
    tokenizer, _ = qwen
    parts = len(tokenizer.encode(text[:at])) + len(tokenizer.encode(text[at:]))
    assert parts - len(tokenizer.encode(text)) <= 4


@given(st.text(max_size=60) | st.text(st.characters(max_codepoint=127), max_size=60))
@settings(max_examples=500)
def test_its_pieces_are_known(qwen, qwen_library, text):
    """Also for the expression and the merges of the real one."""
    tokenizer, _ = qwen
    assert tokenizer._pieces is not None
    assert qwen_library.encode(text, add_special_tokens=False).ids == tokenizer.encode(text)
