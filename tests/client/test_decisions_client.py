"""Requests of systemone as those of OpenAI's wire, and that wire's answers back."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from openjev_core.client.asking import ask_server
from openjev_core.client.decisions import decisions_request, names_of, systemone_answers
from openjev_core.client.server import DECISIONS, SYSTEMONE, Server
from openjev_core.errors import RequestError, StartupError

NOUL = {"type": "noul", "instructions": "So?"}
PREDICATE = {"type": "predicate", "name": "q", "instructions": "So?"}
USAGE = {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 3}, "output_tokens": 2}


def asked(question, state="x", **more):
    return {"model": "jev-latest", "state": state, "questions": {"q": question}, **more}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (NOUL, PREDICATE),
        (
            {"type": "noul", "criteria": {"true": "Paid.", "false": {"k": 1}}},
            {
                **PREDICATE,
                "instructions": 'Which outcome describes the input?\nIt is true when: Paid.\nIt is false when: {"k":1}',
            },
        ),
        (
            {"type": "choice", "instructions": ["Which", 1], "criteria": {"a": None, "b": ["é"]}},
            {
                "type": "choice",
                "name": "q",
                "instructions": '["Which",1]',
                "choices": [{"value": "a"}, {"value": "b", "description": '["é"]'}],
            },
        ),
        (
            {"type": "score", "criteria": ["low", {"n": 2}]},
            {
                "type": "score",
                "name": "q",
                "instructions": "Which level describes the input best?",
                "levels": [{"label": "low"}, {"label": '{"n":2}'}],
            },
        ),
    ],
)
def test_a_question_becomes_one_of_this_wire(question, expected):
    request = decisions_request(asked(question, x_orders="full", extra=1), "m")
    assert {"model": "m", "input": "x", "questions": [expected], "x_orders": "full"} == request


CHAT = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
ITEMS = [{"type": "message", **message} for message in CHAT]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("", ""),
        ({"a": 1}, '{"a":1}'),
        ([], "[]"),
        (CHAT, ITEMS),
        ({"messages": CHAT}, ITEMS),
        ([{"role": "tool", "content": "é"}], '[{"role":"tool","content":"é"}]'),
        ([{**CHAT[1], "name": "A"}], '[{"role":"user","content":"Hi","name":"A"}]'),
        ([{"role": "user", "content": None}], '[{"role":"user","content":null}]'),
    ],
)
def test_a_state_becomes_input(state, expected):
    assert expected == decisions_request(asked(NOUL, state), "m")["input"]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"model": "m", "state": "x"}, "expected a request with a state and an object of questions"),
        (asked(NOUL, 7), "state: expected a string, an object or an array, found an integer"),
        (asked({"type": "tags"}), "questions.q.type: a server of /v1/decisions is asked questions of the types"),
        (asked("?"), "questions.q: expected an object with a type"),
        (asked({"type": "choice", "criteria": ["a"]}), "questions.q.criteria: expected the options"),
    ],
)
def test_what_this_wire_has_no_place_for_is_refused(document, words):
    with pytest.raises(RequestError) as caught:
        decisions_request(document, "m")
    assert str(caught.value).startswith(words)


def test_answers_come_back_in_systemones_shape():
    spread = [{"value": True, "probability": 0.75}, {"value": "true", "probability": 0.25}]
    levels = [{"value": 0, "label": "low", "probability": 0.5}, {"value": 1, "label": "high", "probability": 0.5}]
    sent = [
        {"type": "predicate", "name": "x", "probability": 0.5, "x_label_mass": 0.9},
        {"type": "choice", "name": None, "choice": "true", "probabilities": spread[1:], "confidence": 0.1},
        {"type": "choice", "name": None, "choice": True, "probabilities": spread, "confidence": 0.2},
        {"type": "score", "name": None, "score": 0.5, "probabilities": levels, "confidence": 0.0},
        {"type": "refusal", "name": None},
    ]
    assert {
        "a": {"type": "noul", "noul": 0.5, "x_label_mass": 0.9},
        "b": {"type": "choice", "choice": "true", "probabilities": {"true": 0.25}, "confidence": 0.1},
        "c": {
            "type": "choice",
            "choice": "true",
            "probabilities": {"true": 0.75, '"true"': 0.25},
            "confidence": 0.2,
        },
        "d": {
            "type": "score",
            "score": 0.5,
            "legend": {"0": "low", "1": "high"},
            "probabilities": {"0": 0.5, "1": 0.5},
            "confidence": 0.0,
        },
        "e": {"type": "refusal", "x_error": {"message": "the server refused this question"}},
    } == systemone_answers("abcde", sent)


def test_questions_without_a_name_of_their_own_are_numbered():
    names = [{"name": "a"}, {}, {"name": "b"}, {"name": "b"}, {"name": ""}, {"name": None}]
    assert ["a", "2", "3", "4", "5", "6"] == names_of(names)


def sent_to(path, document, *replies, written=None):
    """What a server of a wire is sent, and what is made of its replies."""
    seen = []

    def reply(request):
        seen.append((request.url.path, request.content))
        return httpx.Response(200, json=replies[len(seen) - 1])

    async def run():
        async with httpx.AsyncClient(base_url="http://server", transport=httpx.MockTransport(reply)) as client:
            return await ask_server(Server(client, "http://server", path, 1.0), document, written)

    try:
        return seen, asyncio.run(run())
    except StartupError as error:
        return seen, error


def test_a_request_goes_as_it_is_to_its_own_wire():
    reply = {"model": "m", "answers": {"q": {"type": "noul", "noul": 0.5}}, "usage": {**USAGE, "cached_tokens": 4}}
    document = asked(NOUL, {"n": 1.0})
    written = json.dumps(document, indent=3).replace("1.0", "1.00").encode()
    seen, answered = sent_to(SYSTEMONE, document, reply, written=written)
    assert [(SYSTEMONE, written)] == seen
    assert (reply["answers"], (5, 2, 4)) == (answered.answers, answered.usage)


@pytest.mark.parametrize("path", [SYSTEMONE, DECISIONS])
def test_a_request_of_decisions_goes_there_whatever_the_address_says(path):
    document = {"model": "gpt", "input": "x", "questions": [PREDICATE]}
    reply = {"model": "m", "answers": [{"type": "predicate", "name": "q", "probability": 0.25}], "usage": USAGE}
    seen, answered = sent_to(path, document, reply, written=b"as written")
    assert [(DECISIONS, b"as written")] == seen
    assert ({"q": {"type": "noul", "noul": 0.25}}, (5, 2, 3)) == (answered.answers, answered.usage)


def test_a_server_of_decisions_is_asked_for_its_own_model():
    models = {"data": [{"id": "gpt-6-luna"}, {"id": "other"}]}
    reply = {"model": "m", "answers": [{"type": "predicate", "name": "q", "probability": 0.25}], "usage": USAGE}
    seen, _ = sent_to(DECISIONS, asked(NOUL), models, reply, written=b"ignored")
    assert ("/v1/models", b"") == seen[0]
    assert {"model": "gpt-6-luna", "input": "x", "questions": [PREDICATE]} == json.loads(seen[1][1])
    seen, _ = sent_to(DECISIONS, {**asked(NOUL), "model": "other"}, reply)
    assert "other" == json.loads(seen[0][1])["model"]


@pytest.mark.parametrize(
    "reply",
    [
        [],
        {"model": "m", "answers": [], "usage": USAGE},
        {"model": "m", "answers": [{"type": "other"}], "usage": USAGE},
        {"model": "m", "answers": [{"type": "predicate"}], "usage": USAGE},
        {"model": "m", "answers": {"q": {"noul": 0.5}}, "usage": USAGE},
        {"model": "m", "answers": [{"type": "predicate", "probability": 0.5}], "usage": {"input_tokens": "?"}},
    ],
)
def test_another_server_is_recognised(reply):
    document = {"model": "gpt", "input": "x", "questions": [PREDICATE]}
    _, error = sent_to(DECISIONS, document, reply)
    assert isinstance(error, StartupError)
    assert str(error).startswith("http://server answered 200 with something that is no answer of this API")
