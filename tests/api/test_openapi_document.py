"""The OpenAPI document: it is one, it describes what the server does, and it follows the installed plugins."""

from __future__ import annotations

import httpx
import jsonschema_rs
import orjson
import pytest
import schemathesis
from attrs import frozen
from hypothesis import HealthCheck, given, settings
from live_server import live_server
from schemathesis.specs.openapi.checks import positive_data_acceptance

from openjev_core.api.openapi import openapi_document
from openjev_core.api.openapi_examples import example_request
from openjev_core.plugins.registry import load_registry, registry_of
from openjev_core.question import Option, QuestionType, Readout


@pytest.fixture(scope="module")
def document():
    return openapi_document(load_registry())


OPERATIONS = {
    "/v1/systemone": "POST",
    "/v1/decisions": "POST",
    "/v1/prompts": "POST",
    "/v1/models": "GET",
    "/v1/models/{id}": "GET",
    "/v1/limits": "GET",
    "/health": "GET",
    "/health/live": "GET",
    "/metrics": "GET",
}


RIGHT, WRONG = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE


@pytest.mark.parametrize(
    ("path", "mode"),
    [*((path, RIGHT) for path in OPERATIONS), *((path, WRONG) for path, m in OPERATIONS.items() if m == "POST")],
)
def test_every_response_is_one_that_the_document_describes(document, server, path, mode):
    operation = schemathesis.openapi.from_dict(document)[path][OPERATIONS[path]]

    @given(operation.as_strategy(generation_mode=mode))
    @settings(max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    def check(case):
        # What a schema cannot say (a chat's roles, a question that says nothing) is refused though it allows it.
        case.call_and_validate(base_url=server.url, excluded_checks=[positive_data_acceptance])

    check()


def test_it_is_an_openapi_document(document):
    assert "3.1.0" == document["openapi"]
    assert set(OPERATIONS) == set(document["paths"])
    assert [] == sorted(references(document) - components(document))


def references(node):
    """Every reference in a document."""
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*map(references, node.values()))
    return set().union(*map(references, node)) if isinstance(node, list) else set()


def components(document):
    return {f"#/components/{kind}/{name}" for kind, members in document["components"].items() for name in members}


def validator(document, schema):
    return jsonschema_rs.validator_for({"$ref": f"#/components/schemas/{schema}", "components": document["components"]})


def test_its_example_is_valid_and_is_answered_as_described(document, server):
    example = document["paths"]["/v1/systemone"]["post"]["requestBody"]["content"]["application/json"]["example"]
    assert {"noul", "choice", "score"} == {question["type"] for question in example["questions"].values()}
    assert validator(document, "Request").is_valid(example)
    reply = httpx.post(server.url + "/v1/systemone", json=example)
    assert 200 == reply.status_code
    assert [] == [error.message for error in validator(document, "Evaluation").iter_errors(reply.json())]


def test_the_example_of_decisions_is_valid_and_is_answered_as_described(document, server):
    example = document["paths"]["/v1/decisions"]["post"]["requestBody"]["content"]["application/json"]["example"]
    assert validator(document, "DecisionRequest").is_valid(example)
    reply = httpx.post(server.url + "/v1/decisions", json=example)
    assert 200 == reply.status_code
    assert [] == [error.message for error in validator(document, "Decision").iter_errors(reply.json())]


@pytest.mark.parametrize(
    "question",
    [
        {"type": "bogus"},
        {"type": "noul", "instruction": "x"},
        {"type": "choice", "instructions": "x"},
        {"type": "score", "criteria": {"0": "a", "1": "b"}},
        {"type": "choice", "criteria": {"a": 1, "b": None}},
    ],
)
def test_it_tells_a_wrong_question(document, question):
    request = {"model": "jev-latest", "state": "x", "questions": {"q": question}}
    assert not validator(document, "Request").is_valid(request)


def test_every_documented_error_has_its_shape_and_headers(document):
    responses = document["paths"]["/v1/systemone"]["post"]["responses"]
    assert {"200", "400", "401", "408", "413", "415", "422", "431", "500", "502", "503", "504", "529"} == set(responses)
    for status, response in document["components"]["responses"].items():
        assert status == "431" or "x-typesafe-request-id" in response["headers"], status
    assert "Retry-After" in document["components"]["responses"]["529"]["headers"]


@frozen(kw_only=True)
class Rank:
    items: list[str]


@frozen(kw_only=True)
class RankAnswer:
    x_order: list[int]


def test_it_follows_the_installed_types():
    rank = QuestionType(
        name="rank",
        summary="An order of items.",
        api=1,
        question=Rank,
        answer=RankAnswer,
        readouts=lambda question: [Readout(text="x", options=tuple(Option(key=i, text=i) for i in question.items))],
        reduce=lambda question, found: RankAnswer(x_order=[0]),
        examples=(Rank(items=["a", "b"]),),
    )
    registry = registry_of(rank)
    document = openapi_document(registry)
    assert {"rank": {"type": "rank", "items": ["a", "b"]}} == example_request(registry)["questions"]
    assert ["rank"] == list(document["components"]["schemas"]["Question"]["discriminator"]["mapping"])
    assert "x_order" in document["components"]["schemas"]["rank.answer"]["properties"]


def test_the_server_serves_this_document(document, server):
    assert document == httpx.get(server.url + "/openapi.json").json()


def test_it_is_written_once(monkeypatch):
    """Written anew for each request, 6,000 of them in one write each from 200 clients kept everybody waiting."""
    written, dumps = [], orjson.dumps

    def noted(value, *options):
        if isinstance(value, dict) and "openapi" in value:
            written.append(value)
        return dumps(value, *options)

    monkeypatch.setattr(orjson, "dumps", noted)
    with live_server() as running:
        first, second = (httpx.get(running.url + "/openapi.json") for _ in range(2))
        again = httpx.get(running.url + "/openapi.json", headers={"if-none-match": first.headers["etag"]})
    assert (1, 304) == (len(written), again.status_code)
    assert written == [first.json()] == [second.json()]


def test_its_server_is_where_the_document_is(document):
    """So that clients reach a server below a path, which a proxy strips."""
    assert ["."] == [server["url"] for server in document["servers"]]


def test_every_response_has_an_example_of_its_schema(document):
    """Pages would invent one of "string" and "additionalProperty"."""
    shown = {("components", status): one for status, one in document["components"]["responses"].items()}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            shown.update({(path, status): one for status, one in operation["responses"].items() if "$ref" not in one})
    without = set()
    for place, response in shown.items():
        content = response.get("content", {}).get("application/json")
        if content is None or "example" not in content:
            without.add(place)
            continue
        name = content["schema"]["$ref"].removeprefix("#/components/schemas/")
        assert [] == [error.message for error in validator(document, name).iter_errors(content["example"])], place
    assert {
        ("components", "431"),
        ("/v1/prompts", "200"),
        ("/v1/limits", "200"),
        ("/metrics", "200"),
        ("/health", "503"),
    } == without


def test_the_example_answers_every_type_in_the_request(document):
    operation = document["paths"]["/v1/systemone"]["post"]
    asked = operation["requestBody"]["content"]["application/json"]["example"]["questions"]
    answers = operation["responses"]["200"]["content"]["application/json"]["example"]["answers"]
    assert {name: question["type"] for name, question in asked.items()} == {n: a["type"] for n, a in answers.items()}


def test_a_type_that_fails_on_its_example_has_no_answer_in_the_document():
    broken = QuestionType(
        name="broken",
        summary="Fails.",
        api=1,
        question=Rank,
        answer=RankAnswer,
        readouts=lambda question: [Readout(text="x", options=(Option(key="a", text="a"), Option(key="b", text="b")))],
        reduce=lambda question, found: 1 / 0,
        examples=(Rank(items=["a", "b"]),),
    )
    responses = openapi_document(registry_of(broken))["paths"]["/v1/systemone"]["post"]["responses"]
    assert {} == responses["200"]["content"]["application/json"]["example"]["answers"]
