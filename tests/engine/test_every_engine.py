"""Every type on every engine: answers, and what the README's table says of each engine."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager

import pytest
from document_blocks import ROOT
from example_types import every_question, every_type
from live_server import live_server
from tiny_tokenizer import write_tiny_tokenizer

from openjev_core import Settings, open_engine

pytestmark = pytest.mark.anyio

STATE = "I was charged twice, and nobody answers."
ROW = re.compile(r"\| `([a-z.-]+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|")
TABLE = {name: cells for name, *cells in ROW.findall((ROOT / "README.md").read_text("utf-8"))}
ENGINES = ("llama-server", "sglang", "vllm", "systemone", "decisions")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return str(write_tiny_tokenizer(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(params=ENGINES)
def opened(request, start_double, start_vllm, tokenizer):
    """Opens the engine on a server of its kind, with some settings."""

    @asynccontextmanager
    async def to_engine(**settings):
        settings = {"max_input_tokens": 2042, "engine": request.param, **settings}
        match request.param:
            case "llama-server":
                server = request.getfixturevalue("demo_engine").server
                settings |= {"connect": server.url, "backend_api_key": server.api_key}
            case "sglang":
                double = await start_double(frontend="python", model_path=tokenizer)
                settings |= {"connect": double.url}
            case "vllm":
                double = await start_vllm(root=tokenizer)
                settings |= {"connect": double.url}
        if "connect" in settings:
            async with open_engine(Settings(**settings), registry=every_type()) as engine:
                yield engine
            return
        with live_server(registry=every_type()) as server:
            asking = Settings(connect=server.url, **settings)
            async with open_engine(asking, registry=every_type()) as engine:
                yield engine

    to_engine.name = request.param
    return to_engine


@pytest.mark.parametrize("prior", ["off", "contentless"])
async def test_every_type_is_answered(opened, prior):
    async with opened(prior=prior) as engine:
        found = await engine.evaluate(state=STATE, questions=every_question())
    assert list(every_question()) == list(found.answers)
    assert not [answer for answer in found.answers.values() if "x_error" in answer]


async def test_the_table_says_what_each_engine_has(opened):
    _, label_mass, cached_tokens, warm_prefix = TABLE[opened.name]
    questions = {name: question for name, question in every_question().items() if question["type"] == "choice"}
    async with opened() as engine:
        for _ in range(2):
            found = await engine.evaluate(state=STATE, questions=questions, orders=2)
    (answer,) = found.answers.values()
    assert "x_order_spread" in answer
    assert ("x_label_mass" in answer) == (label_mass == "yes")
    if cached_tokens in {"yes", "no"}:
        assert (found.usage.cached_tokens is not None) == (cached_tokens == "yes")
    assert (found.usage.prefix_tokens > 0) == (warm_prefix == "yes")


def test_the_table_has_every_engine():
    assert {"llama.cpp", *ENGINES} == set(TABLE)
