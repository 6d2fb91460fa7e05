"""What is checked of a running vLLM before its answers are served."""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager

import pytest
from tiny_tokenizer import write_tiny_tokenizer
from vllm_double_answers import Fault

from openjev_core import Settings, StartupError
from openjev_core.backends.served_model import TRICKY
from openjev_core.backends.vllm import opening
from openjev_core.backends.vllm.opening import fact_lines, open_vllm, tokens_line
from openjev_core.backends.vllm.wire import VLLMFacts, facts_of
from openjev_core.prompts.tokenizer import load_tokenizer

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory):
    return write_tiny_tokenizer(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def tokenizer(model_dir):
    return load_tokenizer(str(model_dir), None)[0]


@asynccontextmanager
async def opened(url, **settings):
    async with open_vllm(url, Settings(**settings), vocab_size=49152) as backend:
        yield backend


async def test_what_the_pages_say_of_the_model_and_its_cache(start_vllm):
    double = await start_vllm(root="org/Model-1", adapters=("adapter-1",))
    async with opened(double.url) as backend:
        assert backend.facts == VLLMFacts(
            version="0.32.0",
            model="smollm2",
            root="org/Model-1",
            max_model_len=2048,
            prefix_cache=True,
            block_size=16,
        )
        assert 2047 == backend.max_prompt_tokens


async def test_a_server_that_is_too_old_is_refused_with_the_version_that_is_needed(start_vllm):
    double = await start_vllm(version="0.25.1", reads_labels=False)
    with pytest.raises(
        StartupError, match=r"which vLLM 0\.26\.0 and newer answer, found vLLM 0\.25\.1 and: .*no logprob"
    ):
        async with opened(double.url):
            pass


async def test_nothing_there_ends_the_start():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(StartupError, match=f"expected a vLLM at {url}, found: vLLM cannot be reached"):
            async with opened(url):
                pass


async def test_a_wrong_key_is_named_and_not_shown(start_vllm):
    double = await start_vllm(api_key="right-key")
    async with opened(double.url, backend_api_key="right-key"):
        pass
    with pytest.raises(StartupError, match="OPENJEV_BACKEND_API_KEY") as caught:
        async with opened(double.url, backend_api_key="wrong-key"):
            pass
    assert "-key" not in str(caught.value).replace("--api-key", "")


async def test_a_server_that_hangs_ends_the_start(start_vllm, monkeypatch):
    monkeypatch.setattr(opening, "PROOF_TIMEOUT", 0.1)
    double = await start_vllm()
    double.faults.append(Fault("hang"))
    with pytest.raises(StartupError, match=r"probe: .* found vLLM 0\.32\.0 and: none within 0\.1 s"):
        async with opened(double.url):
            pass


async def test_without_inspection_nothing_is_sent_and_no_model_is_named(start_vllm):
    double = await start_vllm()
    settings = Settings(max_input_tokens=500)
    async with open_vllm(double.url, settings, vocab_size=49152, inspect=False) as backend:
        assert [] == double.calls
        assert 499 == backend.max_prompt_tokens
        await backend.check()


def lines(tokenizer="org/Model-1", max_input_tokens=2048, **known):
    return list(fact_lines(VLLMFacts(**known), url="u", tokenizer=tokenizer, max_input_tokens=max_input_tokens))


def test_each_check_is_told():
    assert [
        "reachable: vLLM 0.32.0, at u",
        "model: mirror/Model-1, tokenized with org/Model-1",
        "prefix cache: on, block size 16",
        "longest prompt: 2047 tokens, 2047 are promised",
    ] == lines(version="0.32.0", root="mirror/Model-1", prefix_cache=True, block_size=16, max_model_len=2048)


def test_what_a_router_does_not_report_is_said_so():
    assert [
        "reachable: vLLM (version not reported), at u",
        "model: not reported; prompts are tokenized with org/Model-1",
        "prefix cache: not reported, block size not reported",
        "longest prompt: not reported; 2047 tokens are promised",
    ] == lines()


@pytest.mark.parametrize(
    ("known", "found"),
    [
        ({"max_model_len": 2047}, "longest prompt: expected 2047 .*found 2046; start vLLM with --max-model-len 2048"),
        (
            {"root": "org/Model-2"},
            "model: expected a server that runs 'org/Model-1', found one that runs 'org/Model-2'",
        ),
        ({"prefix_cache": False}, "prefix cache: expected it on, found it off.*--no-enable-prefix-caching"),
    ],
)
def test_a_failed_check_ends_the_start(known, found):
    with pytest.raises(StartupError, match=found):
        lines(**known)


def test_directories_are_compared_by_their_tokenizers(model_dir, tmp_path):
    copy = write_tiny_tokenizer(tmp_path / "renamed")
    assert f"model: {copy}, tokenized with {model_dir}" == lines(str(model_dir), root=str(copy))[1]
    (copy / "tokenizer.json").write_bytes(b"{}")
    with pytest.raises(StartupError, match="model: expected a server that runs"):
        lines(str(model_dir), root=str(copy))


async def compared(start_vllm, tokenizer, **double):
    async with opened((await start_vllm(**double)).url) as backend:
        return await tokens_line(backend, tokenizer)


async def test_tokenizers_are_compared_token_by_token(start_vllm, tokenizer):
    ours = tokenizer.encode(TRICKY)
    said = f"tokens: a text of {len(TRICKY)} characters is the same {len(ours)} tokens on both sides"
    assert said == await compared(start_vllm, tokenizer, tokenize=tokenizer.encode)


async def test_another_tokenizer_is_found_out_though_it_makes_as_many_tokens(start_vllm, tokenizer):
    with pytest.raises(StartupError, match="it has another tokenizer; name its own with --model"):
        await compared(start_vllm, tokenizer, tokenize=lambda text: tokenizer.encode(text)[::-1])


async def test_a_server_that_takes_no_text_is_not_compared(start_vllm, tokenizer):
    said = await compared(start_vllm, tokenizer)
    assert "tokens: not compared, the server takes no text (vLLM answered 404: Not Found)" == said


@pytest.mark.parametrize(
    "models",
    [
        {},
        {"data": "text"},
        {"data": [5, {"id": "gpt", "owned_by": "openai"}]},
        {"data": [{"id": "adapter", "owned_by": "vllm", "parent": "base"}]},
    ],
)
def test_pages_of_another_shape_report_nothing(models):
    assert VLLMFacts() == facts_of({"version": 5}, models, "# HELP vllm:cache_config_info x\n")


def test_values_of_another_kind_report_nothing():
    served = {"id": "m", "owned_by": "vllm", "root": None, "max_model_len": True}
    metrics = 'vllm:cache_config_info{block_size="None",enable_prefix_caching="maybe"} 1.0\n'
    assert VLLMFacts(model="m") == facts_of({}, {"data": [served]}, metrics)
