"""An engine on a connected SGLang: each check is told in a line, and a failed one ends the start."""

from __future__ import annotations

import socket

import pytest
from tiny_tokenizer import tiny_tokenizer, write_tiny_tokenizer

from openjev_core import Settings, StartupError, open_engine
from openjev_core.backends.sglang.opening import TRICKY, fact_lines
from openjev_core.backends.sglang.wire import SGLangFacts

pytestmark = pytest.mark.anyio

QUESTION = {"type": "choice", "criteria": {"billing": "Payments", "sales": None}}


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory):
    return write_tiny_tokenizer(tmp_path_factory.mktemp("models") / "tiny")


def settings(double, tokenizer, **more):
    return Settings(connect=double.url, model=str(tokenizer), **{"max_input_tokens": 2042, **more})


async def test_each_check_is_told(start_double, frontend, tokenizer):
    double = await start_double(frontend=frontend, model_path=str(tokenizer))
    lines = []
    async with open_engine(settings(double, tokenizer), progress=lines.append) as engine:
        assert "smollm2" == engine.model.public_name
        assert 2042 == engine.limits.max_input_tokens
        evaluation = await engine.evaluate(state="A ticket.", questions={"team": QUESTION})
    assert {"billing", "sales"} == set(evaluation.answers["team"]["probabilities"])
    cache = "on, page size 1" if frontend == "python" else "not reported, page size not reported"
    assert [
        f"connect: found sglang at {double.url}, by GET /model_info",
        f"loading the tokenizer of {tokenizer}",
        f"reachable: SGLang 0.5.19, {frontend} front end, at {double.url}",
        f"model: {tokenizer}, tokenized with {tokenizer}",
        f"prefix cache: {cache}",
        "longest prompt: 2041 tokens, 2041 are promised",
    ] == lines[:6]
    assert lines[6].startswith("probe: 66 labels read, which hold ")
    assert 7 == len(lines)


async def lines_of(double, tokenizer):
    lines = []
    async with open_engine(settings(double, tokenizer), progress=lines.append):
        return lines


def around(text):
    """The tiny tokenizer, with a token of its own before every text, as some have one."""
    return [0, *tiny_tokenizer().encode(text, add_special_tokens=False).ids]


async def test_a_tokenizer_whose_files_are_elsewhere_is_compared_by_counts(start_double, frontend, tokenizer):
    double = await start_double(frontend=frontend, model_path="mirror/Tiny", tokenize=around)
    lines = await lines_of(double, tokenizer)
    (line,) = [line for line in lines if line.startswith("tokens: ")]
    assert f"tokens: a text of {len(TRICKY)} characters is {len(around(TRICKY)) - 2} tokens on both sides" == line


async def test_another_tokenizer_of_the_same_name_is_found_out(start_double, frontend, tokenizer):
    double = await start_double(frontend=frontend, model_path="mirror/Tiny", tokenize=lambda text: [*range(len(text))])
    with pytest.raises(StartupError, match=r"tokens: expected a server that makes \d+ tokens more of one text than"):
        await lines_of(double, tokenizer)


async def test_a_server_that_takes_no_text_is_not_compared(start_double, tokenizer):
    double = await start_double(model_path="mirror/Tiny", tokenize=lambda text: [])
    assert any(
        line.startswith("tokens: not compared, the server takes no text (")
        for line in await lines_of(double, tokenizer)
    )


async def test_a_server_that_dies_of_the_text_is_no_backend(start_double, tokenizer):
    double = await start_double(frontend="python", model_path="mirror/Tiny", tokenize=lambda text: [-1])
    with pytest.raises(StartupError, match="tokens: expected an answer to a text from"):
        await lines_of(double, tokenizer)
    double.rules.violations.clear()


async def test_the_users_name_for_the_model_wins(start_double, tokenizer):
    double = await start_double(model_path=str(tokenizer))
    async with open_engine(settings(double, tokenizer, served_model_name=("Mine-1",))) as engine:
        assert "Mine-1" == engine.model.public_name


@pytest.mark.parametrize(
    ("double", "found"),
    [
        ({"context_length": 1000}, "longest prompt: expected 2041 tokens at least.*found 993;.*--context-length 2048"),
        ({"model_path": "other/Model"}, "model: expected a server that runs .*, found one that runs 'other/Model'"),
        ({"disable_radix_cache": True, "frontend": "python"}, "prefix cache: expected it on, found it off"),
    ],
)
async def test_a_failed_check_ends_the_start_unless_checks_are_skipped(start_double, tokenizer, double, found):
    sglang = await start_double(**{"model_path": str(tokenizer), **double})
    with pytest.raises(StartupError, match=found):
        async with open_engine(settings(sglang, tokenizer)):
            pass
    calls = len(sglang.calls)
    lines = []
    unchecked = settings(sglang, tokenizer, skip_checks=True, engine="sglang")
    async with open_engine(unchecked, progress=lines.append):
        assert "checks: skipped" == lines[-1]
    assert calls == len(sglang.calls)


async def test_nothing_at_the_address(tokenizer):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(StartupError, match=f"expected a server at {url}, found nothing"):
            async with open_engine(Settings(connect=url, model=str(tokenizer))):
                pass


async def test_the_tokenizer_is_the_one_that_the_server_names(start_double, tokenizer):
    double = await start_double(model_path=str(tokenizer))
    lines = []
    async with open_engine(Settings(connect=double.url, max_input_tokens=2042), progress=lines.append):
        assert f"loading the tokenizer of {tokenizer}" in lines


async def test_a_tokenizer_that_is_not_here_has_to_be_named(start_double):
    double = await start_double(model_path="/not/on/this/machine")
    with pytest.raises(StartupError, match=r"the tokenizer of '/not/on/this/machine'.* --model"):
        async with open_engine(Settings(connect=double.url)):
            pass


async def test_a_server_that_is_asked_nothing_does_not_name_it(start_double):
    double = await start_double()
    with pytest.raises(StartupError, match=r"asked nothing, because of --skip-checks, .* has to be named: --model"):
        async with open_engine(Settings(connect=double.url, engine="sglang", skip_checks=True)):
            pass
    assert [] == double.calls


def facts(**known):
    return list(fact_lines(SGLangFacts(**known), url="u", tokenizer="org/Model-1", max_input_tokens=100))


def test_what_a_router_does_not_report_is_said_so():
    assert [
        "reachable: SGLang (version not reported), front end not reported, at u",
        "model: not reported; prompts are tokenized with org/Model-1",
        "prefix cache: not reported, page size not reported",
        "longest prompt: not reported; 99 tokens are promised",
    ] == facts()


@pytest.mark.parametrize("path", ["org/Model-1", "/models/model-1/", "mirror/Model-1"])
def test_a_model_is_known_by_the_last_part_of_its_name(path):
    assert f"model: {path}, tokenized with org/Model-1" == facts(model_path=path)[1]


def test_directories_are_compared_by_their_tokenizers(tokenizer, tmp_path):
    copy = write_tiny_tokenizer(tmp_path / "renamed")
    known = SGLangFacts(model_path=str(copy))
    lines = list(fact_lines(known, url="u", tokenizer=str(tokenizer), max_input_tokens=100))
    assert f"model: {copy}, tokenized with {tokenizer}" == lines[1]
    (copy / "tokenizer.json").write_bytes(b"{}")
    with pytest.raises(StartupError, match="model: expected a server that runs"):
        list(fact_lines(known, url="u", tokenizer=str(tokenizer), max_input_tokens=100))
