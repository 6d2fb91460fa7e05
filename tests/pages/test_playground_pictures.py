"""Pictures say what the numbers say, and no text breaks the page."""

from __future__ import annotations

import json

import pytest
from playground_page import Playground

pytestmark = pytest.mark.browser

LEVELS = ["Calm and friendly", "Slightly annoyed", "Clearly frustrated", "Furious"]


@pytest.fixture
def playground(toy, open_page):
    return Playground(open_page(f"{toy.url}/playground"))


def shown_score(playground, probabilities):
    """The picture of a score with these probabilities."""
    score = sum(level * p for level, p in enumerate(probabilities))
    answer = {
        "type": "score",
        "score": score,
        "legend": {str(level): text for level, text in enumerate(LEVELS)},
        "probabilities": {str(level): p for level, p in enumerate(probabilities)},
        "confidence": 0.5,
    }
    body = {"model": "toy", "answers": {"frustration": answer}, "usage": {"input_tokens": 1, "output_tokens": 1}}
    playground.page.route("**/v1/systemone", lambda route: route.fulfill(json=body))
    playground.page.keyboard.press("Control+Enter")
    playground.page.wait_for_selector("#evaluation .rung")
    return playground.answers.nth(2)


@pytest.mark.parametrize(
    ("probabilities", "best", "figure"),
    [
        ([0.1, 0.1, 0.3, 0.5], ["Furious"], "2.20 expected, of 0 to 3; ± 0.98"),
        ([0.5, 0.0, 0.0, 0.5], ["Furious", "Calm and friendly"], "1.50 expected, of 0 to 3; ± 1.50"),
        ([0.0, 1.0, 0.0, 0.0], ["Slightly annoyed"], "1.00 expected, of 0 to 3; ± 0.00"),
    ],
)
def test_the_most_probable_level_is_marked(playground, keep, probabilities, best, figure):
    card = shown_score(playground, probabilities)
    assert best == card.locator(".best .rung-name").all_text_contents()
    assert figure == card.locator(".figure").text_content()
    rail, marker, spread = (card.locator(name).bounding_box() for name in (".rail", ".marker", ".range"))
    expected = sum(level * p for level, p in enumerate(probabilities))
    from_top = (marker["y"] + marker["height"] / 2 - rail["y"]) / rail["height"]
    assert pytest.approx((3 - expected + 0.5) / 4, abs=0.02) == from_top
    deviation = sum(p * (level - expected) ** 2 for level, p in enumerate(probabilities)) ** 0.5
    share = (min(3, expected + deviation) - max(0, expected - deviation)) / 4
    assert pytest.approx(share, abs=0.02) == spread["height"] / rail["height"]
    keep(playground.page, f"playground-score-{best[0].split()[0].lower()}")


def shown_answer(playground, answer, type_name="survey"):
    """The card of an answer of another type."""
    questions = {"q": {"type": type_name, "topic": "What?", "items": ["a", "b"]}}
    playground.drop("request.json", json.dumps({"state": "x", "questions": questions}))
    playground.page.wait_for_selector("#toast >> text=Opened request.json")
    body = {"model": "toy", "answers": {"q": {"type": type_name} | answer}, "usage": {}}
    playground.page.route("**/v1/systemone", lambda route: route.fulfill(json=body))
    playground.page.keyboard.press("Control+Enter")
    playground.page.wait_for_selector("#evaluation .value")
    return playground.answers.first


def test_refusals_stand_among_the_options(playground, keep):
    shares = {"router": 0.5, "app": 0.2}
    card = shown_answer(playground, {"choice": "router", "shares": shares, "none_of_these": 0.25, "cannot_tell": 0.05})
    bars = zip(
        card.locator(".bar-name").all_text_contents(), card.locator(".bar-number").all_text_contents(), strict=True
    )
    assert [("router", "50.0%"), ("none of these", "25.0%"), ("app", "20.0%"), ("cannot tell", "5.0%")] == list(bars)
    assert ["choice", "shares"] == card.locator(".values dt").all_text_contents()
    assert ["router"] == card.locator(".best .bar-name").all_text_contents()
    keep(playground.page, "playground-refusals")


def test_numbers_are_rounded_and_records_are_tables(playground):
    card = shown_answer(
        playground,
        {"mean": 1234.56789, "count": 12, "items": [{"name": "a", "p": 0.123456}, {"name": "b", "p": 1}]},
    )
    assert ["1235", "12"] == card.locator(".number").all_text_contents()
    assert "1234.56789" == card.locator(".number").first.get_attribute("title")
    rows = [row.locator("th, td").all_text_contents() for row in card.locator(".records tr").all()]
    assert [["", "name", "p"], ["1", "a", "0.1235"], ["2", "b", "1"]] == rows


def test_what_stands_beside_an_answer_is_said_in_words_and_doubted_where_it_is_to_be(playground):
    def shown(**beside):
        answer = {"type": "noul", "noul": 0.5, **beside}
        body = {"model": "toy", "answers": {"wants_refund": answer}, "usage": {}}
        playground.page.route("**/v1/systemone", lambda route: route.fulfill(json=body))
        playground.page.keyboard.press("Control+Enter")
        playground.page.wait_for_selector("#run:not(.busy)")
        return playground.answers.first.locator(".facts div").all_text_contents()

    assert ["label mass98.2%", "calibrationfitted on this question", "acceptyes", "other[1]"] == shown(
        x_label_mass=0.982, x_calibration="question", x_accept=True, x_other=[1]
    )
    assert [
        "label mass12.5%: most of the probability went to other tokens",
        "calibrationnone fits",
        "acceptno: beneath what the calibration promises",
    ] == shown(x_label_mass=0.125, x_calibration="none", x_accept=False)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"type": "noul", "criteria": {"true": "It is"}, "instructions": "Late?"}, "has criteria"),
        ({"type": "choice", "criteria": {"a": None, "b": None}}, "has no instructions"),
        ({"type": "survey", "topic": "x", "items": ["a", "b"]}, "has no instructions"),
    ],
)
def test_what_decisions_cannot_carry_is_said(playground, question, said):
    playground.drop("request.json", json.dumps({"state": "x", "questions": {"q": question}}))
    playground.page.wait_for_selector("#toast >> text=Opened request.json")
    assert f"# “q” {said}" in playground.code("openai")


URL = "https://example.org/" + "a" * 72
WORD = "b" * 300


@pytest.mark.parametrize("width", [390, 768, 1280])
@pytest.mark.parametrize("word", [URL, WORD])
def test_no_word_is_too_long(playground, keep, width, word):
    page = playground.page
    page.set_viewport_size({"width": width, "height": 900})
    playground.write_state(word)
    page.fill("[aria-label='Name of question 2']", word)
    choice = playground.cards.nth(1)
    choice.get_by_label("Criteria, name 1").fill(word)
    choice.get_by_label("Instructions", exact=True).fill(word)
    playground.cards.nth(2).get_by_label("Criteria, item 0", exact=True).fill(word)
    playground.run()
    for tab in ("answers", "prompts", "runs", "code"):
        page.click(f"#tab-{tab}")
        page.wait_for_selector(f"#{tab}:not([hidden])")
        wide = page.evaluate("document.documentElement.scrollWidth")
        keep(page, f"playground-long-{len(word)}-{width}-{tab}")
        assert width == wide, tab


def test_the_tabs_stay_below_the_bar_at_the_pages_end(playground):
    page = playground.page
    page.set_viewport_size({"width": 1280, "height": 700})
    for _ in range(6):
        playground.add("score")
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    bar = page.locator(".bar").bounding_box()
    tabs = page.locator(".tabs").bounding_box()
    assert tabs["y"] >= bar["y"] + bar["height"]


@pytest.mark.parametrize(("text", "direction"), [("كيف الحال", "rtl"), ("How are you?", "ltr")])
def test_a_text_has_the_direction_of_its_script(playground, text, direction):
    playground.write_state(text)
    playground.page.fill("[aria-label='Name of question 1']", text)
    playground.run()
    for place in (".state-text", ".question-id", ".answer-id"):
        assert direction == playground.page.locator(place).first.evaluate("one => getComputedStyle(one).direction")


def test_bars_and_switches_show_with_forced_colours(toy, open_page, keep):
    page = open_page(f"{toy.url}/playground", forced_colors="active")
    Playground(page).run()
    drawn = "one => getComputedStyle(one).backgroundColor"
    canvas = page.locator("body").evaluate(drawn)
    for place in (".bar-row .bar", ".segmented input:checked + span", ".stack-part.branches"):
        assert canvas != page.locator(place).first.evaluate(drawn), place
    keep(page, "playground-forced-colours")
