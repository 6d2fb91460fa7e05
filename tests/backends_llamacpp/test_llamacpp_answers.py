"""One call: what is sent, what comes back, and what becomes of each fault."""

from __future__ import annotations

import json
import math

import pytest

from openjev_core.backends.llamacpp.client import LlamaCppClient
from openjev_core.backends.protocol import Reading
from openjev_core.errors import BackendError, BackendUnavailable

pytestmark = pytest.mark.anyio

LABELS = (7, 5, 6)


def answer(**changes):
    top = [{"id": 5, "prob": 0.5}, {"id": 7, "prob": 0.375}, {"id": 6, "prob": 0.125}]
    whole = {
        "tokens_evaluated": 30,
        "tokens_predicted": 1,
        "timings": {"prompt_n": 4},
        "completion_probabilities": [{"id": 5, "prob": 0.5, "top_probs": top}],
    }
    return whole | changes


def tops(*pairs):
    return answer(completion_probabilities=[{"top_probs": [{"id": id, "prob": prob} for id, prob in pairs]}])


class Server:
    """Gives one answer to every call, and remembers it."""

    url = "http://llama"

    def __init__(self, content, status=200):
        self.content, self.status = content, status

    async def send_within(self, seconds, method, path, body):
        self.asked = method, path, json.loads(body)
        return self.status, self.content


async def read(content, labels=LABELS, status=200):
    if not isinstance(content, bytes):
        content = json.dumps(content).encode()
    return await LlamaCppClient(Server(content, status)).complete((1, 2, 3), labels, slot=0, reuse=True)


async def test_a_call_reads_the_labels_alone_and_keeps_the_cache():
    server = Server(json.dumps(answer()).encode())
    await LlamaCppClient(server).complete((1, 2, 3), LABELS, slot=3, reuse=True)
    expected = {
        "prompt": [1, 2, 3],
        "id_slot": 3,
        "n_predict": 1,
        "cache_prompt": True,
        "samplers": ["temperature"],
        "temperature": 1.0,
        "n_probs": 3,
        "post_sampling_probs": True,
        "logit_bias": [[7, 100.0], [5, 100.0], [6, 100.0]],
        "response_fields": ["tokens_evaluated", "tokens_predicted", "timings", "completion_probabilities"],
    }
    assert ("POST", "completion", expected) == server.asked


async def test_logprobs_come_in_the_order_of_the_labels_not_of_the_answer():
    expected = Reading(
        (math.log(0.375), math.log(0.5), math.log(0.125)), prompt_tokens=30, cached_tokens=26, output_tokens=1
    )
    assert expected == await read(answer())


async def test_a_label_without_any_probability_is_minus_infinity():
    found = await read(tops((7, 1), (5, 0.0), (6, 0)))
    assert (0.0, -math.inf, -math.inf) == found.logprobs


async def test_entries_of_other_tokens_are_passed_over():
    found = await read(tops((9, 0.1), (6, 0.25), (5, 0.25), (7, 0.5)))
    assert (math.log(0.5), math.log(0.25), math.log(0.25)) == found.logprobs


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (tops((7, 0.5), (5, 0.5)), r"no probability for 1 of 3 labels: \[6\]"),
        (tops((7, 0.5), (5, 0.25), (6, 0.125), (5, 0.125)), "two probabilities for one token"),
        (tops((7, None), (5, 0.5), (6, 0.5)), r"Expected `float`, got `null` - at .*\.prob`"),
        (tops((7, True), (5, 0.5), (6, 0.5)), "Expected `float`, got `bool`"),
        (tops((7, "0.5"), (5, 0.5), (6, 0.5)), "Expected `float`, got `str`"),
        (tops((7, -0.5), (5, 0.5), (6, 0.5)), r"Expected `float` >= 0"),
        (tops((7, 1.5), (5, 0.5), (6, 0.5)), r"Expected `float` <= 1\.0001"),
        (answer(completion_probabilities=[]), "no probabilities after sampling"),
        (answer(completion_probabilities=[{"top_logprobs": []}]), "no probabilities after sampling"),
        (answer(completion_probabilities=[{"top_probs": []}]), "no probability for 3 of 3"),
        (answer(completion_probabilities=[{"top_probs": ["x", None]}]), "Expected `object`, got `str`"),
        (answer(timings=None), r"Expected `object`, got `null` - at `\$\.timings`"),
        (answer(timings={}), "missing required field `prompt_n`"),
        (answer(timings={"prompt_n": 1000}), "reports 1000 computed tokens of a prompt of"),
        (answer(tokens_evaluated=-1), r"Expected `int` >= 0 - at `\$\.tokens_evaluated`"),
        (answer(tokens_predicted=True), "Expected `int`, got `bool`"),
        ([], "not what /completion returns: Expected `object`, got `array`"),
        (b"{", "is not JSON"),
    ],
)
async def test_an_answer_that_is_no_distribution_is_an_error(body, complaint):
    with pytest.raises(BackendError, match=complaint) as caught:
        await read(body)
    assert BackendError is caught.type


async def test_a_warm_up_asks_for_no_labels_and_needs_none():
    found = await read(answer(completion_probabilities=None), labels=())
    assert () == found.logprobs


@pytest.mark.parametrize(
    ("status", "content", "kind", "complaint"),
    [
        (
            400,
            b'{"error": {"message": "request (9 tokens) exceeds"}}',
            BackendError,
            r"400: request \(9 tokens\) exceeds",
        ),
        (401, b'{"error": {"message": "Invalid"}}', BackendError, "OPENJEV_BACKEND_API_KEY"),
        (500, b"<html>" + b"x" * 9000, BackendError, "answered 500: <html>x{200,300}$"),
        (500, b"", BackendError, "no reason given"),
        (503, b'{"error": {"message": "Loading model"}}', BackendUnavailable, "Loading model"),
    ],
)
async def test_a_refused_call_says_whether_waiting_helps(status, content, kind, complaint):
    with pytest.raises(BackendError, match=complaint) as caught:
        await read(content, status=status)
    assert kind is caught.type
