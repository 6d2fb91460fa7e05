"""Recorded exchanges of the real server: the client reads them, and the double answers in their shape.

``OPENJEV_TEST_VLLM_TRACES`` names the directory that holds them, each a ``request`` and a ``response``; without it, the
directory is looked for beside the project.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import httpx
import orjson
import pytest

from openjev_core.backends.protocol import Branch
from openjev_core.backends.replies import error_text
from openjev_core.backends.vllm.wire import VLLMFacts, facts_of, parse, reading_of
from openjev_core.errors import BackendError

BESIDE = Path(__file__).parents[3] / "shared" / "traces" / "vllm-0.32.0"
FILES = sorted(Path(os.environ.get("OPENJEV_TEST_VLLM_TRACES", BESIDE)).glob("*.json"))
TRACES = {file.stem: json.loads(file.read_text()) for file in FILES}
COMPLETIONS = {name: trace for name, trace in TRACES.items() if trace["request"]["path"] == "/v1/completions"}
ANSWERED = [name for name, trace in COMPLETIONS.items() if trace["response"]["status"] == 200]
REFUSED = [name for name in COMPLETIONS if name not in ANSWERED]
PAGES = ["health", "models", "tokenize", "version"]

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not FILES, reason="there are no traces (OPENJEV_TEST_VLLM_TRACES)")]


def prompts_of(body):
    return body["prompt"] if isinstance(body["prompt"][0], list) else [body["prompt"]]


@pytest.mark.parametrize("name", ANSWERED)
def test_every_recorded_answer_is_read(name):
    asked, answer = COMPLETIONS[name]["request"]["body"], COMPLETIONS[name]["response"]["body"]
    prompts, labels = prompts_of(asked), tuple(asked["logprob_token_ids"])
    found, cached = parse(orjson.dumps(answer), [len(prompt) for prompt in prompts])
    assert cached == answer["usage"]["prompt_tokens_details"]["cached_tokens"]
    for choice, logprobs, prompt in zip(answer["choices"], found, prompts, strict=True):
        reading = reading_of(logprobs, Branch(tuple(prompt), labels), calls=1, tokens=len(prompt), cached=None)
        top = choice["logprobs"]["top_logprobs"][0]
        assert reading.logprobs == tuple(top[f"token_id:{label}"] for label in labels)
        assert reading.label_mass is not None
        assert 0 < reading.label_mass < 1


def test_what_the_pages_say():
    version, models = (TRACES[name]["response"]["body"] for name in ("version", "models"))
    facts = facts_of(version, models, "")
    assert facts == VLLMFacts(version="0.32.0", model="smollm2", root="smollm2", max_model_len=4096)


@pytest.mark.parametrize("name", REFUSED)
def test_every_recorded_refusal_is_told_in_its_own_words(name):
    body = COMPLETIONS[name]["response"]["body"]
    assert error_text(orjson.dumps(body)) == body["error"]["message"]


def shape(value):
    """Keys and kinds, without values; lists of one kind count once."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value[:1]]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


@pytest.mark.parametrize("name", [*COMPLETIONS, *PAGES])
async def test_the_double_answers_in_the_recorded_shape(start_vllm, name):
    request, response = TRACES[name]["request"], TRACES[name]["response"]
    double = await start_vllm(max_model_len=4096, tokenize=lambda text: [1, 2])
    async with httpx.AsyncClient(base_url=double.url) as client:
        found = await client.request(request["method"], request["path"], json=request["body"])
    double.rules.violations.clear()  # a recording has what openjev never sends
    assert found.status_code == response["status"]
    assert found.headers.get("content-type") == response["headers"].get("content-type")
    recorded = response["body"]
    if name in REFUSED:
        assert found.json() == recorded
    elif name in ANSWERED:
        # The sampled token is the double's own.
        for body in (answer := found.json()), recorded:
            for choice in body["choices"]:
                choice["logprobs"]["top_logprobs"] = len(choice["logprobs"]["top_logprobs"][0])
        assert shape(answer) == shape(recorded)
        assert len(answer["choices"]) == len(recorded["choices"])
        assert answer["choices"][0]["logprobs"]["top_logprobs"] == recorded["choices"][0]["logprobs"]["top_logprobs"]
    elif name == "health":
        assert found.text == recorded
    else:
        wanted = shape(recorded)
        for model in wanted.get("data", []):
            model["permission"] = []
        assert shape(found.json()) == wanted


@pytest.mark.parametrize("body", [b'{"choices":[{"a":%b', b'{"choices":NaN,"a":%b'])
def test_nesting_that_exhausts_a_parser_is_an_error_of_the_backend(body):
    with pytest.raises(BackendError, match="not JSON"):
        parse(body % (b"[" * 100_000), [1])
