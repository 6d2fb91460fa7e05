"""The official client, in every mode that it has, against the live server."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx2
import pytest
from attrs import frozen
from live_server import live_server
from pydantic import BaseModel
from raw_http import connection, post, request
from toy_model import ToyBackend
from typesafe_sdk import (
    AsyncTypeSafeClient,
    Choice,
    Noul,
    RetryPolicy,
    Score,
    TypeSafeAPIError,
    TypeSafeAPITimeoutError,
    TypeSafeAuthenticationError,
    TypeSafeClient,
    TypeSafeUnprocessableEntityError,
)
from until import eventually

from openjev_core.errors import BackendUnavailable
from openjev_core.plugins.registry import load_registry, registry_of
from openjev_core.question import Option, QuestionType, Readout

WRONG = {"q": {"type": "choice", "criteria": dict.fromkeys(map(str, range(65)))}}
QUESTIONS = {
    "refund": Noul(instructions="Is a refund asked for?"),
    "team": Choice(instructions="Which team?", criteria={"billing": "Money", "技術": None}),
    "anger": Score(instructions="How angry?", criteria=["calm", {"level": "cross"}, "furious"]),
}
STATE = "I was charged twice. " * 100


@frozen(kw_only=True)
class Tags:
    names: dict[str, str]


@frozen(kw_only=True)
class TagsAnswer:
    tags: dict[str, float]


def tag_readouts(question):
    for name, text in question.names.items():
        yield Readout(
            key=name,
            text=f"Does this tag fit: {text}",
            options=(Option(key="y", text="yes"), Option(key="n", text="no")),
        )


TAGS = QuestionType(
    name="tags",
    summary="Several tags, each by itself.",
    api=1,
    question=Tags,
    answer=TagsAnswer,
    readouts=tag_readouts,
    reduce=lambda question, found: TagsAnswer(tags={d.readout.key: d["y"] for d in found}),
)


@pytest.fixture(scope="module")
def keyed():
    registry = registry_of(*load_registry().types.values(), TAGS)
    with live_server(api_key=("the-key",), registry=registry) as running:
        yield running


def client(server, **options):
    return TypeSafeClient(**{"api_key": "the-key", "base_url": server.url, "timeout": 20.0, **options})


def assert_answered(result):
    assert 0 <= result.nouls["refund"].noul <= 1
    assert {"billing", "技術"} == set(result.choices["team"].probabilities)
    assert 1 == pytest.approx(sum(result.choices["team"].probabilities.values()))
    assert {0: "calm", 1: {"level": "cross"}, 2: "furious"} == dict(result.scores["anger"].legend)
    assert 4 == result.usage.output_tokens


@pytest.mark.parametrize("compression", [False, "zstd", None])
def test_synchronously(keyed, compression):
    with client(keyed, compression=compression) as sdk:
        assert_answered(sdk.system_one(state=STATE, questions=QUESTIONS))


@pytest.mark.parametrize("compression", [False, "zstd"])
def test_asynchronously(keyed, compression):
    async def ask():
        async with AsyncTypeSafeClient(api_key="the-key", base_url=keyed.url, compression=compression) as sdk:
            return await asyncio.gather(*(sdk.system_one(state=STATE, questions=QUESTIONS) for _ in range(8)))

    for result in asyncio.run(ask()):
        assert_answered(result)


def test_a_client_that_prefers_http2_gets_its_answers_over_http1(certificates):
    files, context = certificates
    versions = []
    with live_server(api_key=("the-key",), **files) as running:
        http = httpx2.Client(http2=True, verify=context, timeout=20)
        http.event_hooks["response"].append(lambda response: versions.append(response.http_version))
        with client(running, http_client=http, timeout=20) as sdk:
            for _ in range(3):
                assert_answered(sdk.system_one(state=STATE * 10, questions=QUESTIONS))
            with pytest.raises(TypeSafeUnprocessableEntityError):
                sdk.system_one(state=STATE, questions=WRONG)
        http = httpx2.Client(http2=True, verify=context, timeout=20)
        with client(running, http_client=http, api_key="wrong", compression=False) as sdk:
            for _ in range(3):
                with pytest.raises(TypeSafeAuthenticationError):
                    sdk.system_one(state=STATE * 10, questions=QUESTIONS)
            assert_answered_after = client(running, http_client=httpx2.Client(http2=True, verify=context))
            assert_answered(assert_answered_after.system_one(state=STATE, questions=QUESTIONS))
    assert {"HTTP/1.1"} == set(versions)


def test_models_are_listed(keyed):
    with client(keyed) as sdk:
        assert ["jev-latest", "toy/Toy-1"] == [model.name for model in sdk.models.list().models]


def test_raw_questions_of_a_third_party_type(keyed):
    class Response(BaseModel):
        model: str
        answers: dict[str, Any]

    with client(keyed) as sdk:
        result = sdk.system_one(
            state=STATE,
            questions={"labels": {"type": "tags", "names": {"a": "angry", "b": "billing"}}},
            response_model=Response,
        )
    assert "tags" == result.answers["labels"]["type"]
    assert ["a", "b"] == list(result.answers["labels"]["tags"])


def test_a_problem_names_its_place(keyed):
    with client(keyed) as sdk, pytest.raises(TypeSafeUnprocessableEntityError) as caught:
        sdk.system_one(state=STATE, questions=WRONG)
    assert ["body", "questions", "q", "criteria"] == caught.value.body["detail"][0]["loc"]
    assert caught.value.request_id


def test_a_wrong_key_is_an_authentication_error(keyed):
    with client(keyed, api_key="wrong") as sdk, pytest.raises(TypeSafeAuthenticationError):
        sdk.system_one(state=STATE, questions=QUESTIONS)


def test_bad_requests_are_not_retried(keyed):
    attempts = []
    http = httpx2.Client(event_hooks={"request": [attempts.append]})
    sdk = client(keyed, retry=RetryPolicy(max_retries=5), http_client=http)
    with sdk, pytest.raises(TypeSafeUnprocessableEntityError):
        sdk.system_one(state=STATE, questions=WRONG)
    assert 1 == len(attempts)


def test_it_retries_until_the_backend_is_back():
    backend = ToyBackend(error=BackendUnavailable("gone"))
    with live_server(backend=backend) as running, client(running) as sdk:
        threading.Timer(0.5, lambda: setattr(backend, "error", None)).start()
        assert_answered(sdk.system_one(state=STATE, questions=QUESTIONS))
    assert backend.error is None


def test_it_waits_as_long_as_a_server_at_capacity_says():
    backend = ToyBackend(seconds=30.0)
    server = live_server(backend=backend, max_concurrent_requests=1)
    with server as running, client(running) as sdk, connection(running) as sock:
        sock.sendall(post(request()))
        assert eventually(lambda: running.engine.in_flight == 1)
        with pytest.raises(TypeSafeAPIError) as caught:
            sdk.system_one(state=STATE, questions=QUESTIONS, retry=RetryPolicy(max_retries=0))
        assert 529 == caught.value.status
        threading.Timer(0.2, sock.close).start()
        backend.seconds = 0.0
        assert_answered(sdk.system_one(state=STATE, questions=QUESTIONS))


def test_a_client_that_times_out_frees_its_place():
    backend = ToyBackend(seconds=30.0)
    with live_server(backend=backend) as running:
        sdk = client(running, timeout=0.3, retry=RetryPolicy(max_retries=0))
        with sdk, pytest.raises(TypeSafeAPITimeoutError):
            sdk.system_one(state=STATE, questions=QUESTIONS)
        assert eventually(lambda: running.engine.in_flight == 0)
        assert 1 == backend.cancelled
