"""llama.cpp's tokenizer: text comes back as it was, and cannot spell a control token."""

from __future__ import annotations

import shutil
import struct
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openjev_core.backends.llamacpp.client import Vocabulary
from openjev_core.backends.llamacpp.model import open_llamacpp
from openjev_core.backends.llamacpp.tokenizer import LlamaCppTokenizer, control_tokens_from_server, without_plain_text
from openjev_core.errors import BackendError, BackendUnavailable
from openjev_core.settings import Settings

SPELLED = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<repo_name>", "<file_sep>", "<empty_output>")
# SmolLM2's vocabulary has no token for these control characters, and none for the bytes of planes that are empty.
WITHOUT_TOKEN = "\x04\x06\x13\x14\x16\x1d"
text = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters=WITHOUT_TOKEN, max_codepoint=0x3FFFF), max_size=40
)
spelling = st.lists(st.one_of(text, st.sampled_from(SPELLED), st.sampled_from(["<", "<|", "|>", ">"])), max_size=6).map(
    "".join
)


@given(text)
@example("\x00 a\x00")
@example("  two  spaces\r\n\ttab\u2028line")
@example("\u200b\ufeff🙂👩‍👩‍👧 বাংলা")
def test_text_comes_back(demo_tokenizer, text):
    assert text == demo_tokenizer.decode(demo_tokenizer.encode(text))


@given(spelling)
def test_plain_text_holds_no_control_token_whatever_it_spells(demo_tokenizer, text):
    ids = demo_tokenizer.encode(text)
    assert set(ids).isdisjoint(demo_tokenizer.control_tokens.values())
    assert text == demo_tokenizer.decode(ids)
    assert all(0 <= token < demo_tokenizer.vocab_size for token in ids)


@given(st.lists(st.sampled_from(SPELLED), max_size=4), text)
def test_the_models_own_text_holds_them(demo_tokenizer, controls, text):
    control = demo_tokenizer.control_tokens
    ids = demo_tokenizer.encode("".join(controls) + text.replace("<", ""), control=True)
    assert [control[name] for name in controls] == ids[: len(controls)]


def test_every_control_token_of_the_file_is_known(demo_tokenizer):
    assert 17 == len(demo_tokenizer.control_tokens)
    for name, token in demo_tokenizer.control_tokens.items():
        assert [token] == demo_tokenizer.encode(name, control=True)
        assert token not in demo_tokenizer.encode(name)
    assert 49152 == demo_tokenizer.vocab_size


def test_characters_without_a_token_are_left_out_as_the_model_has_it(demo_tokenizer):
    assert "ab" == demo_tokenizer.decode(demo_tokenizer.encode(f"a{WITHOUT_TOKEN}b"))


def test_no_text_is_no_tokens(demo_tokenizer):
    assert ([], [], "") == (
        demo_tokenizer.encode(""),
        demo_tokenizer.encode("", control=True),
        demo_tokenizer.decode([]),
    )


def test_threads_may_share_it(demo_tokenizer):
    texts = [f"State number {number} of many." for number in range(64)]
    expected = [demo_tokenizer.encode(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert expected == list(pool.map(demo_tokenizer.encode, texts))


def test_a_servers_vocabulary_shows_the_same_control_tokens_as_the_file(demo_tokenizer):
    found = control_tokens_from_server(demo_tokenizer.vocabulary, demo_tokenizer.vocab_size, "")
    assert demo_tokenizer.control_tokens == found


@pytest.mark.anyio
async def test_user_defined_tokens_cannot_be_spelled_either(demo_engine, tmp_path):
    """llama.cpp reads them in any text; ``<think>`` is one of them in many models."""
    path = tmp_path / "user-defined.gguf"
    shutil.copy(demo_engine.file.path, path)
    with path.open("r+b") as file:
        head = file.read(4_000_000)
        types = head.index(b"tokenizer.ggml.token_type") + len("tokenizer.ggml.token_type") + 4 + 4 + 8
        file.seek(types + 4 * demo_engine.header.special["<repo_name>"])
        file.write(struct.pack("<i", 4))
    async with open_llamacpp(Settings(model=str(path), max_input_tokens=64)) as model:
        token = model.tokenizer.control_tokens["<repo_name>"]
        assert [token] == model.tokenizer.vocabulary.tokenize(["<repo_name>"], parse_special=False)
        assert [token] == model.tokenizer.encode("<repo_name>", control=True)
        ids = model.tokenizer.encode("a<repo_name><<repo_name>>")
        assert token not in ids
        assert "a<repo_name><<repo_name>>" == model.tokenizer.decode(ids)
        assert (False, "user-defined") == (model.demo, model.public_name)


def scripted(handle, control):
    vocabulary = Vocabulary("http://llama", transport=httpx.MockTransport(handle))
    return LlamaCppTokenizer(vocabulary, 10, control)


def test_overlapping_spellings_are_all_broken_up():
    tokenizer = scripted(None, {"<a": 1, "a>": 2, "<think>": 3})
    assert ["x<", "a", ">"] == tokenizer.broken_up("x<a>")
    assert ["<<", "think>"] == tokenizer.broken_up("<<think>")
    assert [""] == tokenizer.broken_up("")


def test_a_control_token_that_comes_back_all_the_same_is_an_error():
    tokenizer = scripted(lambda request: httpx.Response(200, json={"tokens": [5, 3]}), {"<think>": 3})
    with pytest.raises(BackendError, match="only spells it"):
        tokenizer.encode("x")


def test_a_model_without_control_tokens_has_plain_text_alone():
    tokenizer = scripted(lambda request: httpx.Response(200, json={"tokens": [5, 3]}), {})
    assert [5, 3] == tokenizer.encode("<think>")


def test_blank_runs_and_single_characters_are_no_control_tokens():
    assert {"<think>": 4} == without_plain_text({"\n\n": 1, "  ": 2, "<": 3, "<think>": 4})


@pytest.mark.parametrize(
    ("answer", "kind", "complaint"),
    [
        (httpx.Response(200, json={"tokens": ["x"]}), BackendError, "not what /tokenize returns: Expected `int`"),
        (httpx.Response(200, json={}), BackendError, "missing required field `tokens`"),
        (httpx.Response(503, json={"error": {"message": "Loading model"}}), BackendUnavailable, "Loading model"),
        (httpx.ConnectError("refused"), BackendUnavailable, "llama.cpp at http://llama did not answer: refused"),
    ],
)
def test_a_server_that_does_not_tokenize_is_an_error(answer, kind, complaint):
    def handle(request):
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(BackendError, match=complaint) as caught:
        scripted(handle, {}).encode("x")
    assert issubclass(caught.type, kind)


def test_an_answer_without_text_is_an_error():
    with pytest.raises(BackendError, match="not what /detokenize returns"):
        scripted(lambda request: httpx.Response(200, json={"content": None}), {}).decode([1])


def test_a_connection_closed_between_two_calls_is_opened_again():
    left = [httpx.RemoteProtocolError("gone"), httpx.Response(200, json={"tokens": [5]})]

    def handle(request):
        if isinstance(found := left.pop(0), Exception):
            raise found
        return found

    assert [5] == scripted(handle, {}).encode("x")


def test_a_closed_one_says_so():
    tokenizer = scripted(None, {})
    tokenizer.vocabulary.close()
    with pytest.raises(BackendUnavailable, match="are closed"):
        tokenizer.encode("x")
