"""An engine on a connected vLLM: it is recognised, each check is told in a line, and answers carry their label mass."""

from __future__ import annotations

import math

import pytest
from sglang_double_model import logprob
from tiny_tokenizer import write_tiny_tokenizer
from vllm_double_answers import Fault

from openjev_core import Settings, StartupError, open_engine
from openjev_core.prompts.tokenizer import load_tokenizer

pytestmark = pytest.mark.anyio

QUESTION = {"type": "choice", "criteria": {"billing": "Payments", "sales": None}}


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory):
    return write_tiny_tokenizer(tmp_path_factory.mktemp("models") / "tiny")


def settings(double, **more):
    return Settings(connect=double.url, **{"max_input_tokens": 2048, **more})


async def test_each_check_is_told(start_vllm, model_dir):
    double = await start_vllm(root=str(model_dir))
    lines = []
    async with open_engine(settings(double), progress=lines.append) as engine:
        assert ("smollm2", "vllm") == (engine.model.public_name, engine.model.engine)
        assert 2048 == engine.limits.max_input_tokens
    assert [
        f"connect: found vllm at {double.url}, by GET /v1/models",
        f"loading the tokenizer of {model_dir}",
        f"reachable: vLLM 0.32.0, at {double.url}",
        f"model: {model_dir}, tokenized with {model_dir}",
        "prefix cache: on, block size 16",
        "longest prompt: 2047 tokens, 2047 are promised",
    ] == lines[:6]
    assert lines[6].startswith("probe: 66 labels read, which hold ")
    assert 7 == len(lines)


async def test_an_answer_is_read_at_its_labels_and_carries_their_mass(start_vllm, model_dir):
    double = await start_vllm(root=str(model_dir))
    async with open_engine(settings(double)) as engine:
        double.calls.clear()
        evaluation = await engine.evaluate(state="A ticket.", questions={"team": QUESTION})
    (prompt,), labels = double.calls[-1].prompts, double.calls[-1].labels
    masses = [math.exp(logprob(prompt, label)) for label in labels]
    answer = evaluation.answers["team"]
    assert pytest.approx(math.fsum(masses)) == answer["x_label_mass"]
    tokenizer, _ = load_tokenizer(str(model_dir), None)
    (first,) = [mass for mass, label in zip(masses, labels, strict=True) if tokenizer.decode([label]) == "A"]
    assert pytest.approx(first / math.fsum(masses)) == answer["probabilities"]["billing"]


async def test_a_tokenizer_whose_files_are_elsewhere_is_compared(start_vllm, model_dir):
    tokenizer, _ = load_tokenizer(str(model_dir), None)
    double = await start_vllm(root="mirror/tiny", tokenize=tokenizer.encode)
    lines = []
    async with open_engine(settings(double, model=str(model_dir)), progress=lines.append):
        assert 1 == len([line for line in lines if line.startswith("tokens: a text of ")])


async def test_a_failed_check_ends_the_start_unless_checks_are_skipped(start_vllm, model_dir):
    double = await start_vllm(root="other/Model")
    with pytest.raises(StartupError, match="found one that runs 'other/Model'"):
        async with open_engine(settings(double, model=str(model_dir))):
            pass
    calls, lines = len(double.calls), []
    unchecked = settings(double, model=str(model_dir), skip_checks=True, engine="vllm")
    async with open_engine(unchecked, progress=lines.append) as engine:
        assert "checks: skipped" == lines[-1]
        assert calls == len(double.calls)
        await engine.check()


async def test_a_tokenizer_that_is_not_here_has_to_be_named(start_vllm):
    double = await start_vllm(root="/not/on/this/machine")
    with pytest.raises(StartupError, match=r"the tokenizer of '/not/on/this/machine'.* --model"):
        async with open_engine(settings(double)):
            pass


async def test_a_server_that_is_asked_nothing_does_not_name_it(start_vllm):
    double = await start_vllm()
    with pytest.raises(StartupError, match=r"asked nothing, because of --skip-checks, .* has to be named: --model"):
        async with open_engine(settings(double, engine="vllm", skip_checks=True)):
            pass
    assert [] == double.calls


async def test_a_key_is_needed_where_the_server_wants_one(start_vllm, model_dir):
    double = await start_vllm(root=str(model_dir), api_key="right-key")
    async with open_engine(settings(double, backend_api_key="right-key")) as engine:
        await engine.check()
    with pytest.raises(StartupError, match="refuses the key") as caught:
        async with open_engine(settings(double, backend_api_key="wrong-key")):
            pass
    assert "wrong-key" not in str(caught.value)


async def test_a_server_that_returns_logits_is_refused_at_the_start(start_vllm, model_dir):
    """``--logprobs-mode raw_logits``: a softmax of them would be right, and the label mass nonsense."""
    double = await start_vllm(root=str(model_dir), faults=[Fault("logits", "branch")])
    with pytest.raises(StartupError, match="the labels' probabilities sum to"):
        async with open_engine(settings(double)):
            pass
