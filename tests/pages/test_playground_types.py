"""A third party's question type: its form, its answer, and its words, which are text whatever they spell."""

from __future__ import annotations

import json

import pytest
from playground_page import Playground, percent
from survey_type import MARKUP

pytestmark = pytest.mark.browser


@pytest.fixture
def playground(toy, open_page):
    playground = Playground(open_page(f"{toy.url}/playground"))
    playground.example("An empty page")
    playground.write_state("A state.")
    return playground


def test_a_form_for_every_kind_of_field(playground, keep):
    card = playground.add("survey")
    card.get_by_label("Topic", exact=True).fill("What is best?")
    card.get_by_label("Items, item 0").fill("one")
    card.get_by_label("Items, item 1").fill("two")
    sent, _ = playground.run()
    only_required = {"type": "survey", "topic": "What is best?", "items": ["one", "two"]}
    assert only_required == json.loads(sent)["questions"]["survey"]

    card.get_by_label("Mode").select_option(label="careful")
    card.get_by_label("Strict").select_option(label="yes")
    card.get_by_label("Rounds").fill("12345678901234567")
    card.get_by_role("button", name="Add to Weights").click()
    card.get_by_label("Weights, name 1").fill("one")
    card.get_by_label("Weights, value 1").fill("0.10")
    card.locator("summary:has-text('Scale')").click()
    card.get_by_label("Low").fill("3")
    card.get_by_label("Extra").fill('{"z": 1, "a": [true, null]}')
    keep(playground.page, "playground-third-party-form", full_page=True)
    sent, body = playground.run()
    question = json.loads(sent)["questions"]["survey"]
    assert {
        **only_required,
        "mode": "careful",
        "strict": True,
        "rounds": 12345678901234567,
        "weights": {"one": 0.1},
        "scale": {"low": 3},
        "extra": {"z": 1, "a": [True, None]},
    } == question
    assert '"weights":{"one":0.10}' in sent

    # The answer is of no form that the page knows.
    answer = body["answers"]["survey"]
    shown = playground.answers.first
    assert ["best", "shares", "ranking", "mean"] == shown.locator(".values dt").all_text_contents()
    assert ["note"] == shown.locator(".facts dt").all_text_contents()
    assert [percent(p) for p in sorted(answer["shares"].values(), reverse=True)] == shown.locator(
        ".bar-number"
    ).all_text_contents()
    assert [answer["best"]] == shown.locator(".best .bar-name").all_text_contents()
    assert answer["ranking"] == shown.locator(".pills li").all_text_contents()
    keep(playground.page, "playground-third-party-answer")


def test_numbers_that_are_none(playground):
    card = playground.add("survey")
    card.get_by_label("Topic", exact=True).fill("x")
    card.get_by_label("Items, item 0").fill("one")
    card.get_by_label("Items, item 1").fill("two")
    card.get_by_label("Rounds").fill("twelve")
    playground.page.keyboard.press("Control+Enter")
    playground.page.wait_for_selector("#evaluation [role=alert]")
    assert {"Rounds": "a number is needed here, such as 3 or 0.5"} == playground.problems()


def test_a_plugins_words_are_text(toy, open_page):
    playground = Playground(open_page(f"{toy.url}/playground"))
    card = playground.add("survey")
    assert MARKUP in playground.page.locator(".add-type").last.text_content()
    assert "<script>" in card.locator(".hint").first.text_content()
    assert ["the model"] == card.locator(".hint code").all_text_contents()
    assert_nothing_ran(playground.page)


def test_whatever_a_person_or_a_model_writes_is_text(toy, open_page, keep):
    playground = Playground(open_page(f"{toy.url}/playground"))
    playground.example("An empty page")
    playground.write_state(MARKUP)
    choice = playground.add("choice")
    choice.get_by_label("Instructions", exact=True).fill(MARKUP)
    for index, name in enumerate([MARKUP, "__proto__"]):
        choice.get_by_label(f"Criteria, name {index + 1}").fill(name)
        choice.get_by_label(f"Criteria, value {index + 1}", exact=True).fill(f"{MARKUP}{index}")
    score = playground.add("score")
    for index in range(2):
        score.get_by_label(f"Criteria, item {index}", exact=True).fill(f"{MARKUP}{index}")
    survey = playground.add("survey")
    survey.get_by_label("Topic", exact=True).fill(MARKUP)
    for index in range(2):
        survey.get_by_label(f"Items, item {index}").fill(f"{MARKUP}{index}")
    for index, name in enumerate([f"{MARKUP}</style>", "constructor", "__proto__"], start=1):
        playground.page.fill(f"[aria-label='Name of question {index}']", name)
    sent, body = playground.run()
    assert [f"{MARKUP}</style>", "constructor", "__proto__"] == list(json.loads(sent)["questions"])
    assert list(body["answers"]) == playground.answers.locator("h3").all_text_contents()
    assert {MARKUP, "__proto__"} == set(playground.answers.first.locator(".bar-name").all_text_contents())
    assert MARKUP in playground.answers.last.locator(".values").text_content()
    keep(playground.page, "playground-markup")
    for language in ("curl", "python", "json"):
        playground.code(language)
    playground.page.click("#tab-prompts")
    playground.page.wait_for_selector("#prompt-list .prompt >> nth=3")
    playground.page.check("[name=prompt-form][value=tokens]", force=True)
    playground.page.wait_for_selector(".token")
    playground.page.click("#link")
    playground.page.wait_for_selector("#toast >> text=Link copied")
    assert_nothing_ran(playground.page)
    other = open_page(playground.page.evaluate("navigator.clipboard.readText()"))
    other.reload()
    other.wait_for_selector("#model[data-status]")
    assert [f"{MARKUP}</style>", "constructor", "__proto__"] == Playground(other).ids()
    assert_nothing_ran(other)


def assert_nothing_ran(page):
    assert page.evaluate("globalThis.pwned === undefined")
    assert ["favicon.svg"] == [
        source.rsplit("/", 1)[-1] for source in page.locator("img").evaluate_all("all => all.map((one) => one.src)")
    ]
    assert 1 == page.locator("script").count()
    assert 0 == page.locator("style, iframe, object, embed").count()


def test_the_browser_itself_refuses_markup(toy, open_page):
    page = open_page(f"{toy.url}/playground", allowed=("requires 'TrustedHTML'",))
    error = page.evaluate("() => { try { document.body.innerHTML = 'x'; return null; } catch (e) { return e.name; } }")
    assert "TypeError" == error
