"""A server that needs a key: it is asked for, sent, and kept nowhere."""

from __future__ import annotations

import pytest
from live_server import live_server
from playground_page import REFUSED, Playground

pytestmark = pytest.mark.browser

KEY = "a-secret-of-this-test"


@pytest.fixture(scope="module")
def keyed():
    with live_server(api_key=(KEY,), debug_prompts=False) as running:
        yield running


@pytest.fixture
def page(keyed, open_page):
    return open_page(f"{keyed.url}/playground", allowed=(REFUSED,))


def give(page, key):
    page.fill("#key-input", key)
    page.keyboard.press("Enter")


def test_a_key_is_asked_for_where_one_is_needed(page, keep):
    page.click("#run")
    page.wait_for_selector("dialog")
    keep(page, "playground-key")
    give(page, "wrong")
    page.wait_for_selector("dialog >> text=The server does not accept this key.")
    with page.expect_response("**/v1/systemone") as caught:
        give(page, KEY)
    assert 200 == caught.value.status
    page.wait_for_selector("#evaluation .answer")
    assert "Key set" == page.locator("#key").text_content()
    # From now on it goes along unasked.
    Playground(page).run()


def test_a_key_is_kept_in_memory_alone(keyed, page):
    page.click("#key")
    give(page, KEY)
    page.wait_for_selector("#key.on")
    playground = Playground(page)
    playground.run()
    for language in ("curl", "python"):
        code = playground.code(language)
        assert KEY not in code
        assert "OPENJEV_API_KEY" in code
    page.click("#link")
    page.wait_for_selector("#toast >> text=Link copied")
    kept = page.evaluate(
        "JSON.stringify([localStorage, sessionStorage, document.cookie, history.state, location.href])"
    )
    assert KEY not in kept
    assert KEY not in page.content()
    page.reload()
    page.wait_for_selector("#model[data-status]")
    page.click("#run")
    page.wait_for_selector("dialog")


def test_whoever_gives_no_key_is_told(page):
    page.click("#run")
    page.wait_for_selector("dialog")
    page.keyboard.press("Escape")
    notice = page.locator("#evaluation .notice")
    notice.wait_for()
    assert "Error 401" in notice.text_content()


def test_a_server_that_shows_no_prompts_says_so(page):
    page.click("#key")
    give(page, KEY)
    page.wait_for_selector("#key.on")
    page.click("#tab-prompts")
    page.wait_for_selector("#prompt-list >> text=OPENJEV_DEBUG_PROMPTS=on")
