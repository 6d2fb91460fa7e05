"""What a person opens, drops or pastes is recognised for what it is."""

from __future__ import annotations

import json

import pytest
from playground_page import Playground

pytestmark = pytest.mark.browser

REQUEST = {
    "model": "jev-latest",
    "state": {"order": 1042},
    "questions": {"late": {"type": "noul", "instructions": "Is it late?"}},
    "x_orders": 2,
}
# Where there are several orders, the page asks for the answers of each.
SENT = REQUEST | {"x_detail": True}
CHAT = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hi!"}]

PASTE = """(text) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    document.querySelector(".state-text").dispatchEvent(
        new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}"""


@pytest.fixture
def playground(toy, open_page):
    return Playground(open_page(f"{toy.url}/playground"))


@pytest.mark.parametrize("row", [{}, {"id": "t1", "labels": {"late": True}}])
def test_a_request_or_a_labelled_row_is_opened(playground, row):
    playground.drop("request.json", json.dumps(REQUEST | row))
    playground.page.wait_for_selector("#toast >> text=Opened request.json")
    assert SENT == json.loads(playground.run()[0])
    playground.page.click("#tab-answers")


def test_a_transcript_becomes_a_chat(playground):
    playground.drop("transcript.json", json.dumps(CHAT))
    playground.page.wait_for_selector(".message >> nth=1")
    assert ["wants_refund", "team", "frustration"] == playground.ids()
    assert CHAT == json.loads(playground.run()[0])["state"]


@pytest.mark.parametrize(
    ("content", "mode", "shown"),
    [
        ("Plain words,\nof two lines.", "text", "Plain words,\nof two lines."),
        ('{"half": ', "text", '{"half": '),
        ('{"2": 1.50, "1": []}', "json", '{\n  "2": 1.50,\n  "1": []\n}'),
        (json.dumps({"messages": CHAT}), "json", json.dumps({"messages": CHAT}, indent=2)),
    ],
)
def test_anything_else_is_a_state(playground, content, mode, shown):
    playground.drop("document.txt", content)
    playground.page.wait_for_selector("#toast >> text=Opened document.txt")
    assert playground.page.locator(f"[name=state-mode][value={mode}]").is_checked()
    assert shown == playground.page.locator(".state-text").input_value()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe\x00", "picture.png cannot be opened: it is no text in UTF-8"),
        (json.dumps({"state": "", "questions": {"a": {"type": "gone"}}}), 'no question type "gone"'),
        (json.dumps({"state": "", "questions": {"a": {"type": "noul", "x": 1}}}), '"a" has not the form of its type'),
    ],
)
def test_what_cannot_be_opened_is_said_so(playground, content, said):
    before = playground.ids()
    playground.drop("picture.png", content)
    playground.page.wait_for_selector("#toast .toast")
    assert said in playground.page.locator("#toast").text_content()
    assert before == playground.ids()


def test_a_request_that_is_pasted_into_the_state_can_be_opened(playground):
    playground.page.fill(".state-text", "")
    playground.page.evaluate(PASTE, json.dumps(REQUEST))
    playground.page.click("#toast >> text=Open it")
    assert ["late"] == playground.ids()
    assert SENT == json.loads(playground.run()[0])


def test_a_link_that_is_pasted_into_the_state_can_be_opened(playground):
    playground.page.click("#link")
    playground.page.wait_for_selector("#toast >> text=Link copied")
    link = playground.page.evaluate("navigator.clipboard.readText()")
    playground.example("An empty page")
    playground.page.evaluate(PASTE, link)
    playground.page.click("#toast >> text=Open it")
    assert ["wants_refund", "team", "frustration"] == playground.ids()


def test_a_request_is_saved(playground):
    with playground.page.expect_download() as caught:
        playground.page.click("#save")
    assert "request.json" == caught.value.suggested_filename
    assert json.loads(playground.code("json")) == json.loads(caught.value.path().read_text())


@pytest.mark.parametrize(
    ("first", "text", "second", "shown"),
    [
        ("text", "It rains.", "json", '"It rains."'),
        ("text", '{"a": 1.50}', "json", '{\n  "a": 1.50\n}'),
        ("json", '"It rains."', "text", "It rains."),
        ("json", '{"a": 1}', "text", '{\n  "a": 1\n}'),
    ],
)
def test_an_editor_takes_over_what_another_holds(playground, first, text, second, shown):
    playground.example("An empty page")
    playground.write_state(text, first)
    playground.page.check(f"[name=state-mode][value={second}]", force=True)
    assert shown == playground.page.locator(".state-text").input_value()


def test_a_text_becomes_a_message(playground):
    playground.example("An empty page")
    playground.write_state("Hello?")
    playground.page.check("[name=state-mode][value=chat]", force=True)
    assert "Hello?" == playground.page.get_by_label("Text of message 1").input_value()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"half": ', "The JSON is not finished"),
        ('[{"role": "user", "content": "Hi", "name": "Ann"}]', "shows messages of a role and a text alone"),
    ],
)
def test_a_state_that_the_chat_editor_cannot_show_is_said_to_be_one(playground, text, said):
    playground.write_state(text, "json")
    playground.page.check("[name=state-mode][value=chat]", force=True)
    playground.page.wait_for_selector(f"#toast >> text={said}")
    playground.page.check("[name=state-mode][value=json]", force=True)
    assert text == playground.page.locator(".state-text").input_value()
