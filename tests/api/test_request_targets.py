"""Which part of a request's target is its path."""

from __future__ import annotations

import pytest
from raw_http import exchange, post, request


def get(server, target):
    return exchange(server, b"GET %b HTTP/1.1\r\nHost: test\r\n\r\n" % target)


@pytest.mark.parametrize(
    "target",
    [b"http://example.org/health/live", b"HTTPS://example.org:8443/health/live?x=/y", b"http://u@[::1]:1/health/live"],
)
def test_a_whole_url_is_taken_for_its_path(server, target):
    assert 200 == get(server, target).status


def test_a_whole_url_takes_an_evaluation(server):
    reply = exchange(server, post(request(), path="http://example.org/v1/systemone"))
    assert (200, {"q"}) == (reply.status, set(reply.json["answers"]))


def test_a_whole_url_without_a_path_is_the_root(server):
    for target in (b"http://example.org", b"http://example.org?x=1", b"http://example.org/"):
        assert (200, get(server, b"/").headers["content-type"]) == (
            get(server, target).status,
            get(server, target).headers["content-type"],
        )


@pytest.mark.parametrize("target", [b"http:///health/live", b"ftp://example.org/health/live", b"//x/health/live"])
def test_what_is_no_such_url_is_no_route(server, target):
    assert 404 == get(server, target).status


@pytest.mark.parametrize("slash", [b"%2F", b"%2f"])
def test_an_encoded_slash_parts_nothing(server, slash):
    reply = get(server, b"/health%blive" % slash)
    assert 404 == reply.status
    assert f"there is no route '/health{slash.decode()}live'" in reply.json["detail"]["message"]
    assert 404 == get(server, b"%bhealth/live" % slash).status
    assert 404 == exchange(server, post(request(), path="/v1%2Fsystemone")).status


def test_other_encoded_characters_are_themselves(server):
    assert 200 == get(server, b"/he%61lth/l%69ve").status


@pytest.mark.parametrize("path", ["/metrics", "/health/live", "/v1/systemone", "/"])
def test_an_encoded_line_break_ends_no_path(server, path):
    assert 404 == get(server, f"{path}%0A".encode()).status
    assert 404 == exchange(server, post(request(), path=f"{path}%0a")).status
    assert "%0" not in exchange(server, b"GET /metrics HTTP/1.0\r\n\r\n").body.decode().lower()
