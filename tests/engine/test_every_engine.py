"""Every type on every engine: answers, and what the README's table says of each engine."""

from __future__ import annotations

import re

import pytest
from attrs import evolve
from document_blocks import ROOT
from example_types import every_question, every_type
from live_server import live_server
from tiny_tokenizer import write_tiny_tokenizer

from openjev_core import Settings, load_registry, open_engine
from openjev_core.testing import check_engine

pytestmark = pytest.mark.anyio

STATE = "I was charged twice, and nobody answers."
ROW = re.compile(r"\| `([a-z.-]+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|")
TABLE = {name: cells for name, *cells in ROW.findall((ROOT / "README.md").read_text("utf-8"))}
ENGINES = ("llama-server", "sglang", "vllm", "systemone", "decisions")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return str(write_tiny_tokenizer(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(params=ENGINES)
async def connected(request, start_double, start_vllm, tokenizer):
    """The settings that connect the engine to a server of its kind."""
    settings = {"engine": request.param, "max_input_tokens": 2042}
    match request.param:
        case "llama-server":
            server = request.getfixturevalue("demo_engine").server
            yield Settings(connect=server.url, backend_api_key=server.api_key, **settings)
        case "sglang":
            yield Settings(connect=(await start_double(frontend="python", model_path=tokenizer)).url, **settings)
        case "vllm":
            yield Settings(connect=(await start_vllm(root=tokenizer)).url, **settings)
        case _:
            with live_server(registry=every_type()) as server:
                yield Settings(connect=server.url, **settings)


@pytest.mark.parametrize("prior", ["off", "contentless"])
async def test_every_type_is_answered(connected, prior):
    async with open_engine(evolve(connected, prior=prior), registry=every_type()) as engine:
        found = await engine.evaluate(state=STATE, questions=every_question())
    assert list(every_question()) == list(found.answers)
    assert not [answer for answer in found.answers.values() if "x_error" in answer]


async def test_the_table_says_what_each_engine_has(connected):
    _, label_mass, cached_tokens, warm_prefix = TABLE[connected.engine]
    questions = {name: question for name, question in every_question().items() if question["type"] == "choice"}
    async with open_engine(connected, registry=every_type()) as engine:
        for _ in range(2):
            found = await engine.evaluate(state=STATE, questions=questions, orders=2)
    (answer,) = found.answers.values()
    assert "x_order_spread" in answer
    assert ("x_label_mass" in answer) == (label_mass == "yes")
    if cached_tokens in {"yes", "no"}:
        assert (found.usage.cached_tokens is not None) == (cached_tokens == "yes")
    assert (found.usage.prefix_tokens > 0) == (warm_prefix == "yes")


@pytest.mark.parametrize(
    "connected",
    [pytest.param(name, marks=[pytest.mark.integration] if name == "llama-server" else []) for name in ENGINES],
    indirect=True,
)
async def test_each_keeps_its_contract(connected):
    await check_engine(load_registry().engines[connected.engine], connected)


def test_the_table_has_every_engine():
    assert {"llama.cpp", *ENGINES} == set(TABLE)
