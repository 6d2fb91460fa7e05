"""The pages over HTTP: what a browser may do with them, keep of them, and load with them."""

from __future__ import annotations

import gzip
import re
from urllib.parse import urljoin

import httpx
import pytest
from live_server import live_server

from openjev_core.api.pages import routes
from openjev_core.api.pages.asset import accepts_gzip, names_tag
from openjev_core.api.pages.routes import SCALAR, SWAGGER_UI, Vendored, find

PAGES = ("/", "/docs", "/playground")


@pytest.fixture(scope="module")
def server():
    with live_server(api_key=("secret",)) as running, httpx.Client(base_url=running.url) as client:
        yield client


def loaded_by(page, html):
    """The files that a page's tags name, as paths."""
    return [urljoin(page, found) for found in re.findall(r'(?:<link|<script|<img)[^>]* (?:href|src)="([^"]+)"', html)]


def imported_by(path, source):
    return [urljoin(path, found) for found in re.findall(r'^import .* from "(\./[^"]+)";$', source, re.MULTILINE)]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_needs_no_key_and_loads_what_this_server_has(server, page):
    reply = server.get(page)
    assert (200, "text/html; charset=utf-8") == (reply.status_code, reply.headers["content-type"])
    seen, waiting = set(), loaded_by(page, reply.text)
    assert len(waiting) >= 3
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        file = server.get(path)
        assert 200 == file.status_code, path
        assert "public, max-age=31536000, immutable" == file.headers["cache-control"], path
        assert "nosniff" == file.headers["x-content-type-options"], path
        waiting += imported_by(path, file.text) if "/scalar" not in path and path.endswith(".js") else []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_holds_no_script_or_style_of_its_own(server, page):
    html = server.get(page).text
    assert [] == re.findall(r"<script(?![^>]* src=)|<style| style=| on\w+=|javascript:|https?://", html)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_may_load_and_call_this_server_alone(server, page):
    headers = server.get(page).headers
    policy = {words[0]: words[1:] for words in (part.split() for part in headers["content-security-policy"].split(";"))}
    assert ["'none'"] == policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"]
    assert ["'self'"] == policy["script-src"] == policy["connect-src"]
    assert not {"'unsafe-eval'", "*", "https:"} & {source for sources in policy.values() for source in sources}
    assert "'unsafe-inline'" not in policy.get("style-src", []) + policy.get("style-src-elem", [])
    assert ("no-referrer", "same-origin") == (headers["referrer-policy"], headers["cross-origin-opener-policy"])


def test_the_playground_can_make_no_markup_from_text(server):
    policy = server.get("/playground").headers["content-security-policy"]
    assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy


def test_the_reference_has_a_new_nonce_each_time(server):
    replies = [server.get("/") for _ in range(2)]
    nonces = [re.search(r"'nonce-([\w-]+)'", r.headers["content-security-policy"]).group(1) for r in replies]
    assert nonces[0] != nonces[1]
    for reply, nonce in zip(replies, nonces, strict=True):
        assert f'<meta property="csp-nonce" content="{nonce}">' in reply.text
        assert "no-store" == reply.headers["cache-control"]


def test_what_a_browser_has_is_not_sent_again(server):
    first = server.get("/playground")
    assert "no-cache" == first.headers["cache-control"]
    again = server.get("/playground", headers={"if-none-match": first.headers["etag"]})
    assert (304, b"") == (again.status_code, again.content)
    assert "content-length" not in again.headers
    assert first.headers["content-security-policy"] == again.headers["content-security-policy"]
    other = server.get("/playground", headers={"if-none-match": '"another"'})
    assert 200 == other.status_code


def test_files_are_compressed_for_those_who_take_it(server):
    path = next(p for p in loaded_by("/playground", server.get("/playground").text) if p.endswith(".js"))
    plain = server.get(path, headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    with server.stream("GET", path, headers={"accept-encoding": "gzip"}) as reply:
        packed = b"".join(reply.iter_raw())
    assert "gzip" == reply.headers["content-encoding"]
    assert plain.content == gzip.decompress(packed)
    assert plain.headers["etag"] != reply.headers["etag"]
    assert "accept-encoding" == plain.headers["vary"] == reply.headers["vary"]


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("br", False),
        ("", False),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
    ],
)
def test_accept_encoding(header, taken):
    assert taken == accepts_gzip(header)


@pytest.mark.parametrize(
    ("header", "has"),
    [('"a"', True), ('W/"a"', True), ('"", "a"', True), ("*", True), ('"ab"', False), ("", False)],
)
def test_if_none_match(header, has):
    assert has == names_tag(header, '"a"')


@pytest.mark.parametrize(
    "path", ["/assets/", "/assets/../api/app.py", "/assets/%2e%2e/playground.html", "/playground/"]
)
def test_nothing_else_is_given_out(server, path):
    assert 404 == server.get(path).status_code


@pytest.mark.parametrize("vendored", [SCALAR, SWAGGER_UI])
def test_the_packages_hold_their_files(vendored):
    found = find(vendored)
    assert found is not None
    assert all(path.stat().st_size > 10_000 for path in found.files.values())


def test_a_package_that_is_not_installed_or_lacks_a_file_is_not_found():
    assert find(Vendored("nothing", "no-such-distribution", ("x.js",))) is None
    assert find(Vendored("pytest", "pytest", ("no/such/file.js",))) is None


def test_without_the_packages_the_pages_say_how_to_get_them(monkeypatch):
    monkeypatch.setattr(routes, "find", lambda _: None)
    with live_server() as running, httpx.Client(base_url=running.url) as client:
        for page, package in (("/", "flask-openapi-scalar"), ("/docs", "flask-swagger-ui")):
            reply = client.get(page)
            assert 200 == reply.status_code
            assert package in reply.text
            assert "pip install 'openjev[pages]'" in reply.text
            assert all(200 == client.get(path).status_code for path in loaded_by(page, reply.text))
        assert 200 == client.get("/playground").status_code
