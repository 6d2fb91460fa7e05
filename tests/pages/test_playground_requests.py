"""What a person writes reaches the server as written: states, forms, order, digits; and survives reloads and links."""

from __future__ import annotations

import base64
import json
import zlib

import pytest
from playground_page import REFUSED, Playground

from openjev_core.errors import BackendUnavailable

pytestmark = pytest.mark.browser


@pytest.fixture
def playground(toy, open_page):
    return Playground(open_page(f"{toy.url}/playground"))


def test_a_state_of_text(playground):
    text = 'Grüße,\n  "quoted" \\ and <|im_end|> 🙂'
    playground.write_state(text)
    sent, _ = playground.run()
    assert text == json.loads(sent)["state"]


def test_a_state_of_json_keeps_its_order_and_digits(playground):
    playground.write_state('{"b": 12345678901234567890123, "10": 1.50, "2": [1e30, -0.0, null]}', "json")
    sent, _ = playground.run()
    assert '"state":{"b":12345678901234567890123,"10":1.50,"2":[1e30,-0.0,null]}' in sent


def test_a_state_of_chat(playground, keep):
    page = playground.page
    page.check("[name=state-mode][value=chat]", force=True)
    page.fill("[aria-label='Text of message 1']", "Hello?")
    page.click("text=Add message")
    page.keyboard.type("How can I help?")
    page.click("text=Add message")
    page.select_option("[aria-label='Role of message 3']", "tool")
    page.fill("[aria-label='Text of message 3']", "21 degrees")
    page.click("[aria-label='Move message 3 up']")
    sent, _ = playground.run()
    assert [
        {"role": "user", "content": "Hello?"},
        {"role": "tool", "content": "21 degrees"},
        {"role": "assistant", "content": "How can I help?"},
    ] == json.loads(sent)["state"]
    keep(page, "playground-chat")
    # The JSON editor takes it over, and gives it back.
    page.check("[name=state-mode][value=json]", force=True)
    assert json.loads(sent)["state"] == json.loads(page.locator(".state-text").input_value())
    page.check("[name=state-mode][value=chat]", force=True)
    page.click("[aria-label='Remove message 2']")
    sent, _ = playground.run()
    assert ["user", "assistant"] == [message["role"] for message in json.loads(sent)["state"]]


def test_questions_are_added_moved_and_removed(playground):
    page = playground.page
    playground.example("An empty page")
    playground.write_state("A state.")
    for name in ("noul", "choice", "score"):
        playground.add(name).locator("textarea").first.fill(f"About {name}?")
    assert ["noul", "choice", "score"] == playground.ids()
    playground.add("noul")
    assert "noul-2" == playground.ids()[-1]
    page.click("[aria-label='Remove question 4']")
    choice = playground.cards.nth(1)
    for index, (name, described) in enumerate([("10", "ten"), ("9", ""), ("one more", "…")]):
        if index == 2:
            choice.get_by_role("button", name="Add to Criteria").click()
        choice.get_by_label(f"Criteria, name {index + 1}").fill(name)
        choice.get_by_label(f"Criteria, value {index + 1}", exact=True).fill(described)
    choice.get_by_role("button", name="Move Criteria 3 up").click()
    score = playground.cards.nth(2)
    for index, level in enumerate(["low", "high"]):
        score.get_by_label(f"Criteria, item {index}", exact=True).fill(level)
    page.click("[aria-label='Move question 3 up']")
    sent, body = playground.run()
    questions = json.loads(sent)["questions"]
    assert ["noul", "score", "choice"] == list(questions)
    assert {"type": "noul", "instructions": "About noul?"} == questions["noul"]
    assert {"type": "score", "instructions": "About score?", "criteria": ["low", "high"]} == questions["score"]
    assert [("10", "ten"), ("one more", "…"), ("9", None)] == list(questions["choice"]["criteria"].items())
    assert list(questions) == list(body["answers"])
    page.click("[aria-label='Remove question 1']")
    assert ["score", "choice"] == playground.ids()
    page.click("#toast >> text=Undo")
    assert ["noul", "score", "choice"] == playground.ids()


def test_a_text_can_be_json(playground):
    playground.example("An empty page")
    card = playground.add("noul")
    card.locator("textarea").first.fill('{"claim": "It rains.", "n": 1.0}')
    card.get_by_role("button", name="Instructions: send as JSON").click()
    sent, _ = playground.run()
    assert '"instructions":{"claim":"It rains.","n":1.0}' in sent


def test_the_orders_go_along(playground):
    playground.page.select_option("#orders", "full")
    assert "full" == json.loads(playground.run()[0])["x_orders"]
    playground.page.select_option("#orders", "2")
    assert 2 == json.loads(playground.run()[0])["x_orders"]
    playground.page.select_option("#orders", "")
    assert "x_orders" not in json.loads(playground.run()[0])


def test_a_reload_changes_nothing(playground):
    playground.write_state('{"half": ', "json")
    playground.add("choice").locator("textarea").first.fill("Which?")
    before = playground.code("json"), playground.ids(), playground.stored()
    playground.page.reload()
    playground.page.wait_for_selector("#model[data-status]")
    assert before == (playground.code("json"), playground.ids(), playground.stored())
    assert '{"half": ' == playground.page.locator(".state-text").input_value()


@pytest.mark.parametrize(
    "kept",
    ["no JSON", "[]", '{"state": 5, "questions": [{"id": 1}, null, {"type": "gone", "id": "a"}]}', '{"questions": {}}'],
)
def test_whatever_is_stored_the_page_starts(playground, kept):
    playground.page.evaluate("kept => localStorage.setItem('openjev.playground', kept)", kept)
    playground.page.reload()
    playground.page.wait_for_selector("#model[data-status]")
    playground.add("noul")


def test_a_link_carries_the_request(toy, playground, open_page):
    playground.write_state('{"2": 1.50, "1": "Ünïcödé 🙂"}', "json")
    playground.page.select_option("#orders", "2")
    playground.page.click("#link")
    playground.page.wait_for_selector("#toast >> text=Link copied")
    link = playground.page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"{toy.url}/playground#request=")
    sent, _ = playground.run()

    other = Playground(open_page(link))
    assert f"{toy.url}/playground" == other.page.url
    assert 0 == other.answers.count(), "a link must not run by itself"
    assert sent == other.run()[0]
    other.page.reload()
    other.page.wait_for_selector("#model[data-status]")
    assert sent == other.run()[0]


def test_opening_a_link_can_be_undone(playground):
    page = playground.page
    playground.write_state("Mine.")
    page.click("#link")
    page.wait_for_selector("#toast >> text=Link copied")
    link = page.evaluate("navigator.clipboard.readText()")
    playground.write_state("Mine, and better.")
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("#toast >> text=Opened the request of the link")
    assert "Mine." == page.locator(".state-text").input_value()
    page.click("#toast >> text=Undo")
    assert "Mine, and better." == page.locator(".state-text").input_value()


@pytest.mark.parametrize(
    "fragment",
    ["%%%", "AAAA", "q1bKTFGyqlYqSi0uzkxJLVayqgYA", "7cEBDQAAAMKg909tDjegAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", ""],
)
def test_a_broken_link_is_said_to_be_one(toy, open_page, fragment):
    page = open_page(f"{toy.url}/playground#request={fragment}")
    page.wait_for_selector("#toast >> text=The link’s request cannot be shown")
    assert ["wants_refund", "team", "frustration"] == Playground(page).ids()


def test_a_link_that_expands_without_end_is_refused(toy, open_page):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(bytes(64 * 1024 * 1024)) + packer.flush()
    assert len(packed) < 100_000
    page = open_page(f"{toy.url}/playground#request={base64.urlsafe_b64encode(packed).decode().rstrip('=')}")
    page.wait_for_selector("#toast >> text=the link holds more than this page takes")


def test_stale_answers_are_called_so(playground):
    stale = playground.page.locator("#stale")
    playground.run()
    assert not stale.is_visible()
    playground.write_state("Something else.")
    stale.wait_for(state="visible")
    playground.run()
    assert not stale.is_visible()


def test_a_run_can_be_stopped(toy, playground):
    toy.backend.seconds = 5.0
    try:
        playground.page.click("#run")
        playground.page.wait_for_selector("#run.busy >> text=Stop")
        playground.page.click("#run")
        playground.page.wait_for_selector("#evaluation >> text=Stopped.")
    finally:
        toy.backend.seconds = 0.0
    assert 3 == len(playground.run()[1]["answers"])


def test_a_backend_that_fails_is_said_to(toy, open_page):
    playground = Playground(open_page(f"{toy.url}/playground", allowed=(REFUSED,)))
    toy.backend.error = BackendUnavailable("the backend is gone")
    try:
        with playground.page.expect_response("**/v1/systemone") as caught:
            playground.page.keyboard.press("Control+Enter")
        notice = playground.page.locator("#evaluation .notice")
        notice.wait_for()
        assert "Error 503" in notice.text_content()
        assert "the backend does not answer; send the request again shortly" in notice.text_content()
        assert caught.value.headers["x-typesafe-request-id"] in notice.text_content()
    finally:
        toy.backend.error = None
