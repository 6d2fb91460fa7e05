"""CORS: off unless configured."""

from __future__ import annotations

import httpx
import pytest
from live_server import live_server
from raw_http import request

ORIGIN = {"Origin": "https://app.example"}
PREFLIGHT = {**ORIGIN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}


@pytest.fixture(scope="module")
def open_to_one():
    with live_server(cors_origins=("https://app.example",), api_key=("k",)) as running:
        yield running


def test_it_is_off_by_default(server):
    reply = httpx.post(server.url + "/v1/systemone", content=request(), headers=ORIGIN)
    assert 200 == reply.status_code
    assert "access-control-allow-origin" not in reply.headers
    assert 405 == httpx.options(server.url + "/v1/systemone", headers=PREFLIGHT).status_code


def test_a_configured_origin_may_ask_and_read(open_to_one):
    preflight = httpx.options(open_to_one.url + "/v1/systemone", headers=PREFLIGHT)
    assert 200 == preflight.status_code
    assert "https://app.example" == preflight.headers["access-control-allow-origin"]
    assert preflight.headers["x-typesafe-request-id"]
    refused = httpx.post(open_to_one.url + "/v1/systemone", content=request(), headers=ORIGIN)
    assert 401 == refused.status_code
    assert "https://app.example" == refused.headers["access-control-allow-origin"]
    assert "x-typesafe-request-id" in refused.headers["access-control-expose-headers"]


def test_another_origin_may_not(open_to_one):
    other = {**PREFLIGHT, "Origin": "https://evil.example"}
    preflight = httpx.options(open_to_one.url + "/v1/systemone", headers=other)
    assert 400 == preflight.status_code
    assert "access-control-allow-origin" not in preflight.headers
    assert "Origin" in preflight.headers["vary"]
    assert "cors_refused" == preflight.json()["detail"]["error_type"]
    assert "Disallowed CORS origin" in preflight.json()["detail"]["message"]
    assert preflight.headers["x-typesafe-request-id"]
