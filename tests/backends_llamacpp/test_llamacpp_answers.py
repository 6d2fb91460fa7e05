"""One call: what is sent, what comes back, and what becomes of each fault."""

from __future__ import annotations

import json
import math

import httpx
import pytest

from openjev_core.backends.llamacpp.client import LlamaCppClient, Unreachable
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


def client(*responses):
    """A client whose server gives these responses in turn; exceptions are raised."""
    left = list(responses)

    def handle(request):
        response = left.pop(0)
        if isinstance(response, Exception):
            raise response
        return response

    return LlamaCppClient("http://llama/", transport=httpx.MockTransport(handle))


async def read(*responses, labels=LABELS):
    return await client(*responses).complete((1, 2, 3), labels, slot=0, reuse=True)


async def test_a_call_reads_the_labels_alone_and_keeps_the_cache():
    seen = []

    def handle(request):
        seen.append(request)
        return httpx.Response(200, json=answer())

    server = LlamaCppClient("http://llama", "secret", httpx.MockTransport(handle))
    await server.complete((1, 2, 3), LABELS, slot=3, reuse=True)

    (request,) = seen
    assert "Bearer secret" == request.headers["authorization"]
    assert "/completion" == request.url.path
    assert {
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
    } == json.loads(request.content)


async def test_logprobs_come_in_the_order_of_the_labels_not_of_the_answer():
    expected = Reading(
        (math.log(0.375), math.log(0.5), math.log(0.125)), prompt_tokens=30, cached_tokens=26, output_tokens=1
    )
    assert expected == await read(httpx.Response(200, json=answer()))


async def test_a_label_without_any_probability_is_minus_infinity():
    found = await read(httpx.Response(200, json=tops((7, 1), (5, 0.0), (6, 0))))
    assert (0.0, -math.inf, -math.inf) == found.logprobs


async def test_entries_of_other_tokens_are_passed_over():
    found = await read(httpx.Response(200, json=tops((9, 0.1), (6, 0.25), (5, 0.25), (7, 0.5))))
    assert (math.log(0.5), math.log(0.25), math.log(0.25)) == found.logprobs


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (tops((7, 0.5), (5, 0.5)), r"no probability for 1 of 3 labels: \[6\]"),
        (tops((7, 0.5), (5, 0.25), (6, 0.125), (5, 0.125)), "the label 5 twice"),
        (tops((7, None), (5, 0.5), (6, 0.5)), "None as the probability of the label 7"),
        (tops((7, True), (5, 0.5), (6, 0.5)), "True as the probability"),
        (tops((7, "0.5"), (5, 0.5), (6, 0.5)), "'0.5' as the probability"),
        (tops((7, -0.5), (5, 0.5), (6, 0.5)), "-0.5 as the probability"),
        (tops((7, 1.5), (5, 0.5), (6, 0.5)), "1.5 as the probability"),
        (answer(completion_probabilities=[]), "no probabilities after sampling"),
        (answer(completion_probabilities=[{"top_logprobs": []}]), "no probabilities after sampling"),
        (answer(completion_probabilities=[{"top_probs": ["x", None]}]), "no probability for 3 of 3"),
        (answer(timings=None), "no timings"),
        (answer(timings={}), "no prompt_n"),
        (answer(timings={"prompt_n": 1000}), "reports 1000 computed tokens of a prompt of"),
        (answer(tokens_evaluated=-1), "no tokens_evaluated"),
        (answer(tokens_predicted=True), "no tokens_predicted"),
        ([], "no JSON object"),
    ],
)
async def test_an_answer_that_is_no_distribution_is_an_error(body, complaint):
    with pytest.raises(BackendError, match=complaint) as caught:
        await read(httpx.Response(200, json=body))
    assert BackendError is caught.type


async def test_a_warm_up_asks_for_no_labels_and_needs_none():
    found = await read(httpx.Response(200, json=answer(completion_probabilities=None)), labels=())
    assert () == found.logprobs


@pytest.mark.parametrize(
    ("response", "kind", "complaint"),
    [
        (
            httpx.Response(400, json={"error": {"code": 400, "message": "request (9 tokens) exceeds"}}),
            BackendError,
            r"answered 400 to /completion: request \(9 tokens\) exceeds",
        ),
        (httpx.Response(401, json={"error": {"message": "Invalid"}}), BackendError, "OPENJEV_BACKEND_API_KEY"),
        (
            httpx.Response(500, text="<html>" + "x" * 9000),
            BackendError,
            "answered 500 to /completion: <html>x{400,500}$",
        ),
        (httpx.Response(500), BackendError, "no reason given"),
        (httpx.Response(503, json={"error": {"message": "Loading model"}}), BackendUnavailable, "Loading model"),
        (httpx.Response(200, text="{"), BackendError, "no JSON object"),
        (httpx.ConnectError("refused"), Unreachable, "cannot be reached at http://llama: refused"),
        (httpx.ReadError(""), BackendUnavailable, "broke off its answer: ReadError"),
        (httpx.ReadTimeout(""), BackendUnavailable, "did not answer in time"),
    ],
)
async def test_a_failed_call_says_whether_waiting_helps(response, kind, complaint):
    with pytest.raises(BackendError, match=complaint) as caught:
        await read(response)
    assert kind is caught.type


async def test_a_connection_closed_between_two_calls_is_opened_again():
    found = await read(httpx.RemoteProtocolError("gone"), httpx.Response(200, json=answer()))
    assert 30 == found.prompt_tokens


async def test_a_server_that_closes_every_connection_is_unavailable():
    with pytest.raises(BackendUnavailable, match="broke off"):
        await read(httpx.RemoteProtocolError("gone"), httpx.RemoteProtocolError("gone"))
