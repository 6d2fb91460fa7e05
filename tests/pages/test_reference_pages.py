"""Scalar and Swagger UI, from this server alone."""

from __future__ import annotations

import json

import pytest
from playground_page import REFUSED
from prefix_proxy import prefix_proxy

pytestmark = pytest.mark.browser


def test_scalar_sends_an_edited_example(embedded, open_page, keep):
    page = open_page(f"{embedded}/", wait="#reference h1")
    page.wait_for_selector("text=Answer typed questions about one state")
    keep(page, "reference")
    page.locator("button:has-text('Test Request')").first.click()
    editor = page.locator(".cm-content:has-text('jev-latest')").first
    editor.wait_for()
    editor.click()
    page.keyboard.press("Control+A")
    question = {"type": "noul", "instructions": "Is it wet?"}
    page.keyboard.insert_text(json.dumps({"model": "jev-latest", "state": "It rains.", "questions": {"wet": question}}))
    with page.expect_response("**/v1/systemone") as caught:
        page.keyboard.press("Control+Enter")
    assert 200 == caught.value.status
    assert ["wet"] == list(caught.value.json()["answers"])
    page.wait_for_selector("text=200 OK")
    keep(page, "reference-sent")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_scalar_follows_the_scheme(embedded, open_page, keep, scheme):
    page = open_page(f"{embedded}/", wait="#reference h1", scheme=scheme, width=390, height=844)
    keep(page, f"reference-phone-{scheme}")
    assert (scheme == "dark") == page.evaluate("document.body.classList.contains('dark-mode')")


def test_scalar_lists_the_installed_types(toy, open_page):
    page = open_page(f"{toy.url}/", wait="#reference h1")
    page.wait_for_selector("text=Answer typed questions about one state")
    assert page.evaluate("globalThis.pwned === undefined")


def test_swagger_ui_executes_the_example(embedded, open_page, keep):
    page = open_page(f"{embedded}/docs", wait="#swagger .opblock")
    page.click("#operations-Questions-evaluate .opblock-summary-control")
    with page.expect_response("**/v1/systemone") as caught:
        page.click("button:has-text('Execute')")
    assert 200 == caught.value.status
    page.wait_for_selector(".responses-table.live-responses-table")
    keep(page, "swagger-ui", full_page=True)


def test_swagger_ui_takes_a_key_and_keeps_it_nowhere(toy, open_page):
    page = open_page(f"{toy.url}/docs", wait="#swagger .opblock", allowed=(REFUSED,))
    page.click("button.authorize")
    page.fill(".auth-container input", "the-key")
    page.click(".auth-btn-wrapper button[type=submit]")
    page.click(".auth-btn-wrapper .btn-done")
    page.click("#operations-Questions-evaluate .opblock-summary-control")
    with page.expect_request("**/v1/systemone") as caught:
        page.click("button:has-text('Execute')")
    assert "Bearer the-key" == caught.value.headers["authorization"]
    assert "the-key" not in page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_swagger_ui_follows_the_scheme(toy, open_page, keep, scheme):
    page = open_page(f"{toy.url}/docs", wait="#swagger .opblock", scheme=scheme)
    keep(page, f"swagger-ui-{scheme}")
    assert (scheme == "dark") == page.evaluate("document.documentElement.classList.contains('dark-mode')")


def test_the_pages_link_to_each_other(toy, open_page):
    page = open_page(f"{toy.url}/playground")
    page.click("nav >> text=Reference")
    page.wait_for_selector("#reference h1")
    page.click("nav >> text=Swagger UI")
    page.wait_for_selector("#swagger .opblock")
    page.click("nav >> text=Playground")
    page.wait_for_selector("#model[data-status]")


@pytest.fixture(scope="module")
def below(toy):
    """The toy's server below a path, behind a proxy that strips it."""
    with prefix_proxy(toy.url, "/jev") as url:
        yield url


def test_scalar_sends_below_a_path(below, open_page):
    page = open_page(f"{below}/", wait="#reference h1")
    page.wait_for_selector("text=Answer typed questions about one state")
    assert below in page.inner_text("#reference")
    page.locator("button:has-text('Test Request')").first.click()
    page.locator(".cm-content:has-text('jev-latest')").first.click()
    with page.expect_response("**/v1/systemone") as caught:
        page.keyboard.press("Control+Enter")
    assert (200, f"{below}/v1/systemone") == (caught.value.status, caught.value.url)


def test_swagger_ui_executes_below_a_path(below, open_page):
    page = open_page(f"{below}/docs", wait="#swagger .opblock")
    page.click("#operations-Questions-evaluate .opblock-summary-control")
    with page.expect_response("**/v1/systemone") as caught:
        page.click("button:has-text('Execute')")
    assert (200, f"{below}/v1/systemone") == (caught.value.status, caught.value.url)


def test_the_pages_link_to_each_other_below_a_path(below, open_page):
    page = open_page(f"{below}/playground")
    for name, ready in (("Reference", "#reference h1"), ("Swagger UI", "#swagger .opblock"), ("Playground", "#model")):
        page.click(f"nav >> text={name}")
        page.wait_for_selector(ready)
        assert page.url.startswith(below + "/")
