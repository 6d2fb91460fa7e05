"""Recorded exchanges of the real server: the client reads them, and the double answers in their shape.

``OPENJEV_TEST_TRACES`` names the directory that holds ``python/*.json`` and ``rust/*.json``, each a ``request`` and a
``response``; without it, the directory is looked for beside the project.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import httpx
import orjson
import pytest

from openjev_core.backends.replies import error_text
from openjev_core.backends.sglang import wire
from openjev_core.errors import BackendError, BackendUnavailable

BESIDE = Path(__file__).parents[3] / "shared" / "traces" / "sglang-0.5.19"
TRACES = Path(os.environ.get("OPENJEV_TEST_TRACES", BESIDE))
FILES = sorted(TRACES.glob("*/*.json"))

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not FILES, reason="there are no traces (OPENJEV_TEST_TRACES)")]


def name_of(file):
    return f"{file.parent.name}-{file.stem}"


def load(file):
    trace = json.loads(file.read_text())
    return trace["request"], trace["response"]


def generate_traces():
    """Every recorded ``/generate`` with an answer in JSON."""
    for file in FILES:
        request, response = load(file)
        body = response.get("body")
        if request["path"] == "/generate" and response.get("status") is not None and isinstance(body, dict | list):
            yield file, request, response


def labelled():
    """Those of them that asked for one output token's labels and got them."""
    for file, request, response in generate_traces():
        asked = request["body"] or {}
        one = asked.get("sampling_params", {})
        one = isinstance(one, dict) and one.get("max_new_tokens") == 1
        if one and asked.get("return_logprob") and asked.get("token_ids_logprob") and response["status"] == 200:
            yield pytest.param(asked, response["body"], id=name_of(file))


def label_lists(asked, size):
    labels = asked["token_ids_logprob"]
    return labels if isinstance(labels[0], list) else [labels] * size


@pytest.mark.parametrize(("asked", "answer"), list(labelled()))
def test_every_recorded_answer_to_a_labelled_call_is_read(asked, answer):
    raw = orjson.dumps(answer)
    batch = isinstance(answer, list)
    elements = wire.parse_many(raw, len(answer)) if batch else [wire.parse_one(raw)]
    answers = answer if batch else [answer]
    for element, labels, recorded in zip(elements, label_lists(asked, len(answers)), answers, strict=True):
        if "error" in recorded:
            with pytest.raises(BackendError, match="longer than the model's context length"):
                wire.read_element(element, labels, rid="", prompt_tokens=0)
            continue
        meta = recorded["meta_info"]
        size = meta.get("prompt_tokens")
        if meta["finish_reason"]["type"] == "abort":
            with pytest.raises(BackendUnavailable, match="Abort"):
                wire.read_element(element, labels, rid=meta["id"], prompt_tokens=9)
            continue
        entries = meta["output_token_ids_logprobs"][0]
        if len(entries) != len({token for _, token, _ in entries}):
            # One recorded call asked for a label twice, which this client never does.
            with pytest.raises(BackendError, match="two logprobs for one label"):
                wire.read_element(element, labels, rid=meta["id"], prompt_tokens=size)
            continue
        reading = wire.read_element(element, labels, rid=meta["id"], prompt_tokens=size)
        assert reading.logprobs == tuple(value for label in labels for value, token, _ in entries if token == label)
        assert (reading.prompt_tokens, reading.output_tokens) == (size, 1)
        assert reading.cached_tokens == meta.get("cached_tokens")


def unlabelled():
    for file, request, response in generate_traces():
        if response["status"] == 200 and not (request["body"] or {}).get("return_logprob"):
            yield pytest.param(response["body"], id=name_of(file))


@pytest.mark.parametrize("answer", list(unlabelled()))
def test_an_answer_without_labels_is_never_taken_for_one(answer):
    for one in answer if isinstance(answer, list) else [answer]:
        element = wire.parse_one(orjson.dumps(one))
        size = one["meta_info"].get("prompt_tokens", 9)
        with pytest.raises(BackendError):
            wire.read_element(element, (9805, 787), rid=one["meta_info"]["id"], prompt_tokens=size)


def refusals():
    for file, _, response in generate_traces():
        if response["status"] >= 400:
            yield pytest.param(response["body"], id=name_of(file))


@pytest.mark.parametrize("answer", list(refusals()))
def test_every_recorded_refusal_is_told_in_its_own_words(answer):
    said = error_text(orjson.dumps(answer))
    words = answer.get("error", answer.get("message"))
    words = words["message"] if isinstance(words, dict) else words
    assert said == " ".join(words.split())[:300]


# What the double leaves out: long generations, sampling, and routes that this client never uses.
SKIPPED_BEGINNINGS = ("auth_", "queue_", "prio", "score", "dup_", "flush", "stream", "abort_", "ab_", "aw_", "fb_")
SKIPPED = {
    *("metrics", "root", "get_load", "v1_loads", "weight_version", "n2", "temp_1", "stop_sampling_list"),
    *("single_start0", "start0_repeat", "start_partial", "single_tokenids_text_top", "single_max_new_0"),
    *("total_too_long", "routed_dp_rank_bad", "dp_rank_0", "sampling_list_short", "warm_prefix_only_max0"),
    *("bad_token_id", "bad_token_id_vocab", "negative_token_id"),
}


def comparable():
    for file in FILES:
        request, response = load(file)
        if file.stem in SKIPPED or file.stem.startswith(SKIPPED_BEGINNINGS) or response.get("status") is None:
            continue
        yield pytest.param(file.parent.name, request, response, id=name_of(file))


def whole(ids):
    """A prompt whose recording was cut: ``[1, 2, "... 596 more"]``."""
    if isinstance(ids[-1], str) and ids[-1].endswith(" more"):
        return [*ids[:-1], *[7] * int(ids[-1].split()[1])]
    return [whole(one) if isinstance(one, list) and one else one for one in ids]


def shape(value):
    """Keys and kinds, without values; lists of one kind count once."""
    if isinstance(value, dict):
        # Null where nothing was cached, so it depends on what the server had seen before.
        return {key: "any" if key == "cached_tokens_details" else shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value[:1]]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


PAGES = ("/server_info", "/get_server_info", "/model_info", "/get_model_info")


@pytest.mark.parametrize(("frontend", "request_", "response"), list(comparable()))
async def test_the_double_answers_in_the_recorded_shape(start_double, frontend, request_, response):
    double = await start_double(frontend=frontend, strict=False)
    body = request_["body"]
    if body and "input_ids" in body and body["input_ids"]:
        body = {**body, "input_ids": whole(body["input_ids"])}
    content = request_["raw"].encode() if request_["raw"] else (orjson.dumps(body) if body is not None else None)
    async with httpx.AsyncClient(base_url=double.url, timeout=10) as client:
        headers = {"content-type": "application/json"}
        answer = await client.request(request_["method"], request_["path"], content=content, headers=headers)
    assert answer.status_code == response["status"]
    assert answer.headers.get("content-type") == response["headers"].get("content-type")
    recorded = response["body"]
    if not isinstance(recorded, dict | list):
        assert answer.text == recorded
        return
    found, wanted = shape(answer.json()), shape(recorded)
    if request_["path"] in PAGES:
        # The pages hold hundreds of fields; the double has those that are read.
        wanted = {key: kind for key, kind in wanted.items() if key in found}
        found.pop("internal_states", None)
        wanted.pop("internal_states", None)
    assert found == wanted


@pytest.mark.parametrize("body", [b'{"meta_info":{"id":"r","finish_reason":{"a":%b', b'{"meta_info":NaN,"a":%b'])
def test_nesting_that_exhausts_a_parser_is_an_error_of_the_backend(body):
    with pytest.raises(BackendError, match="not JSON"):
        wire.parse_one(body % (b"[" * 100_000))
