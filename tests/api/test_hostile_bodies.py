"""Hostile JSON bodies, one row per kind: each gets the status and the place expected, and never a 5xx."""

from __future__ import annotations

import json

import pytest
from hostile_inputs import ACCEPTED, CRITERIA, REFUSED, asking, body, with_text
from raw_http import exchange, post, request

TEXT_PLACES = ["state", "in state", "state key", "id", "instructions", "option", "level", "extra"]
VALUE_PLACES = ["in state", "level", "extra"]


@pytest.mark.parametrize(("data", "loc"), [pytest.param(data, loc, id=name) for name, data, loc in REFUSED])
def test_is_refused_at_its_place(server, data, loc):
    reply = exchange(server, post(data))
    assert 422 == reply.status
    assert "application/json" == reply.headers["content-type"]
    assert reply.headers["x-typesafe-request-id"]
    assert len(reply.body) < 16_000
    problem = reply.json["detail"][0]
    assert loc == problem["loc"]
    assert {"loc", "msg", "type"} == set(problem)
    assert problem["msg"]


@pytest.mark.parametrize("where", TEXT_PLACES)
@pytest.mark.parametrize("escape", [r"\ud800", r"\udfff", r"\ud800\ud800", r"\udc00\ud800"])
def test_lone_surrogates_are_refused_everywhere(server, where, escape):
    reply = exchange(server, post(with_text(where, f'"a{escape}b"')))
    assert 422 == reply.status
    assert "surrogate" in reply.json["detail"][0]["msg"]


@pytest.mark.parametrize("where", VALUE_PLACES)
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000, "01", "+1", "0x10"])
def test_numbers_that_json_or_a_double_cannot_hold_are_refused_everywhere(server, where, number):
    reply = exchange(server, post(with_text(where, number)))
    assert 422 == reply.status
    assert ["body"] == reply.json["detail"][0]["loc"][:1]


@pytest.mark.parametrize("where", VALUE_PLACES)
@pytest.mark.parametrize("brackets", ["[", '{"a":'])
def test_deep_nesting_is_refused_everywhere(server, where, brackets):
    closing = "]" if brackets == "[" else "}"
    reply = exchange(server, post(with_text(where, brackets * 5000 + "1" + closing * 5000)))
    assert 422 == reply.status


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in ACCEPTED])
def test_strange_and_valid_is_answered(server, data):
    reply = exchange(server, post(data))
    assert 200 == reply.status, reply.body[:500]
    assert list(json.loads(data)["questions"]) == list(reply.json["answers"])


def test_a_long_integer_comes_back_digit_for_digit(server):
    digits = "9" * 4000
    reply = exchange(server, post(with_text("level", '{"n": ' + digits + "}")))
    assert 200 == reply.status
    assert f'"n":{digits}'.encode() in reply.body


def test_option_names_come_back_byte_for_byte(server):
    names = ["\u00e9", "e\u0301", " outer ", "\x00", '"\\', "<script>", "k" * 3000]
    reply = exchange(server, post(asking({"type": "choice", "criteria": dict.fromkeys(names, "x")})))
    assert names == list(reply.json["answers"]["q"]["probabilities"])


def test_many_problems_stay_a_small_body(server):
    questions = {f"{i}-{'k' * 1000}": {"type": "x" * 1000} for i in range(60)}
    reply = exchange(server, post(body(questions=questions)))
    assert 422 == reply.status
    assert 21 == len(reply.json["detail"])
    assert "and more problems" == reply.json["detail"][-1]["msg"]
    assert len(reply.body) < 20_000


def test_a_huge_name_is_not_echoed_whole(server):
    name = "n" * 500_000
    reply = exchange(server, post(asking({"type": "choice", "criteria": {name: 1, "b": None}})))
    assert 422 == reply.status
    assert len(reply.body) < 2000
    assert reply.json["detail"][0]["loc"][:4] == CRITERIA


@pytest.mark.parametrize(
    "media_type", ["application/json", "application/json; charset=utf-8", "text/plain", "application/octet-stream", ""]
)
def test_the_media_type_does_not_matter(server, media_type):
    headers = [f"Content-Type: {media_type}"] if media_type else []
    assert 200 == exchange(server, post(request(), headers=headers)).status


@pytest.mark.parametrize("media_type", ["multipart/form-data; boundary=x", "Multipart/Mixed", "multipart/form-data"])
def test_multipart_is_a_415(server, media_type):
    reply = exchange(server, post(b"--x--", headers=[f"Content-Type: {media_type}"]))
    assert 415 == reply.status
    assert "unsupported_body" == reply.json["detail"]["error_type"]
