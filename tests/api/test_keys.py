"""Bearer keys: which routes need one, which are accepted, and that none ever shows."""

from __future__ import annotations

import logging

import httpx
import pytest
from live_server import live_server
from raw_http import exchange, post, request

KEYS = ("first-key", "second-key")
KEYED = ["/v1/models", "/v1/limits", "/metrics"]
OPEN = ["/health", "/health/live", "/openapi.json", "/", "/docs"]


@pytest.fixture(scope="module")
def keyed():
    with live_server(api_key=KEYS) as running:
        yield running


@pytest.mark.parametrize("path", KEYED)
def test_a_keyed_route_needs_a_key(keyed, path):
    reply = httpx.get(keyed.url + path)
    assert 401 == reply.status_code
    assert "Bearer" == reply.headers["www-authenticate"]
    assert "authentication_error" == reply.json()["detail"]["error_type"]
    assert reply.headers["x-typesafe-request-id"]


@pytest.mark.parametrize("path", OPEN)
def test_what_holds_no_data_needs_none(keyed, path):
    assert 200 == httpx.get(keyed.url + path, follow_redirects=True).status_code


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_each_of_several_keys_is_accepted(keyed, key, scheme):
    assert 200 == httpx.get(keyed.url + "/v1/models", headers={"Authorization": f"{scheme} {key}"}).status_code


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer first-ke",
        "Bearer first-key2",
        "Bearer first-key,second-key",
        "Basic Zmlyc3Qta2V5",
        "first-key",
        "Bearer \xff\xfe",
    ],
)
def test_anything_else_is_refused(keyed, header):
    for path in ("/v1/systemone", "/v1/prompts"):
        reply = exchange(keyed, post(request(), path=path, headers=[f"Authorization: {header}"]))
        assert 401 == reply.status


def test_two_authorization_headers_are_refused(keyed):
    headers = ["Authorization: Bearer wrong", "Authorization: Bearer first-key"]
    assert 401 == exchange(keyed, post(request(), headers=headers)).status


def test_a_refused_client_with_a_large_body_reads_its_refusal(keyed):
    assert 401 == exchange(keyed, post(b"a" * 3_000_000)).status


def test_without_keys_a_header_is_ignored(server):
    assert 200 == exchange(server, post(request(), headers=["Authorization: Bearer anything"])).status
    assert 200 == exchange(server, post(request(), headers=["Authorization: nonsense"])).status


def test_no_key_is_ever_shown(keyed, caplog):
    caplog.set_level(logging.DEBUG)
    shown = []
    for header in ("Bearer first-key", "Bearer second-key", "Bearer wrong-key", "Basic other-key"):
        reply = httpx.post(keyed.url + "/v1/systemone", content=request(), headers={"Authorization": header})
        shown += [reply.text, str(reply.headers)]
    shown.append(httpx.get(keyed.url + "/metrics", headers={"Authorization": "Bearer first-key"}).text)
    everything = "\n".join([*shown, caplog.text])
    assert "127.0.0.1" in caplog.text
    assert [] == [key for key in (*KEYS, "wrong-key", "other-key") if key in everything]
