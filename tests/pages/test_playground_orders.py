"""What each order gave, beside its prompt; and which sentences carry an answer."""

from __future__ import annotations

import json
import math

import pytest
from live_server import live_server
from playground_page import Playground, percent
from toy_model import ToyBackend

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def shown():
    """A server that shows prompts, whose toy model prefers what stands first."""
    with live_server(backend=ToyBackend(), debug_prompts=True) as running:
        yield running


def read(playground, orders):
    playground.page.select_option("#orders", orders)
    return playground.run()


def test_each_order_stands_beside_its_prompt(shown, open_page):
    playground = Playground(open_page(f"{shown.url}/playground"))
    sent, body = read(playground, "full")
    assert json.loads(sent)["x_detail"] is True
    (readout,) = body["answers"]["team"]["x_detail"]
    card = playground.answers.nth(1)
    card.locator(".orders-view > summary").click()
    assert f"Each of {len(readout['orders'])} orders" == card.locator(".orders-view > summary").text_content()
    heads = ["Option", "Average", *(f"Order {number + 1}" for number in range(len(readout["orders"])))]
    assert heads == card.locator(".orders-view thead th").all_text_contents()
    rows = card.locator(".orders-view tbody tr")
    for index, option in enumerate(readout["options"]):
        gave = [f"{one['labels'][index]} {percent(one['probabilities'][index])}" for one in readout["orders"]]
        cells = [option, percent(readout["probabilities"][index]), *gave]
        assert cells == rows.nth(index).locator("th, td").all_text_contents()
    widths = [[one["probabilities"][i] for one in readout["orders"]] for i in range(len(readout["options"]))]
    width = max(max(given) - min(given) for given in widths)
    assert f"{width * 100:.1f} points" in card.locator(".orders-view .hint").first.text_content()

    prompts = card.locator(".orders-view .readout > details")
    prompts.last.wait_for()
    assert len(readout["orders"]) == prompts.count()
    for index, order in enumerate(readout["orders"]):
        first = readout["options"][order["order"][0]]
        prompt = prompts.nth(index).locator("pre").text_content()
        assert first in prompt.split("Options:")[-1].strip().splitlines()[0]


def test_one_order_has_no_view_of_orders(shown, open_page):
    playground = Playground(open_page(f"{shown.url}/playground"))
    read(playground, "1")
    assert 0 == playground.page.locator(".orders-view").count()


@pytest.mark.parametrize("width", [390, 768])
def test_long_words_break_neither_the_page_nor_the_numbers(shown, open_page, width):
    page = open_page(f"{shown.url}/playground", width=width)
    playground = Playground(page)
    word = "w" * 120
    playground.write_state(f"Refund me. See https://example.org/{word} there.")
    page.fill("[aria-label='Name of question 1']", word)
    playground.cards.nth(1).get_by_label("Criteria, name 1").fill(word)
    read(playground, "full")
    page.locator(".orders-view").evaluate_all("all => all.forEach((one) => one.open = true)")
    page.locator(".orders-view .table-frame >> nth=2").wait_for()
    what_if(playground)
    assert width == page.evaluate("document.documentElement.scrollWidth")
    heights = page.locator(".orders-view thead th").evaluate_all("all => all.map((one) => one.offsetHeight)")
    assert 1 == len(set(heights))
    lines = "all => all.map((one) => { const range = document.createRange(); range.selectNodeContents(one);"
    lines += " return new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom / 8))).size })"
    numbers = page.locator(".orders-view .records :is(thead th, td:nth-child(2))").evaluate_all(lines)
    assert {1} == set(numbers)


def test_the_spread_is_rounded_for_reading(shown, open_page):
    playground = Playground(open_page(f"{shown.url}/playground"))
    _, body = read(playground, "full")
    spread = body["answers"]["team"]["x_order_spread"]
    fact = playground.answers.nth(1).locator(".facts > div").filter(has_text="order spread")
    assert f"{spread * 100:.1f} points" == fact.locator("dd").text_content()


STATE = "I was charged twice. It rains today! Please refund me."


def what_if(playground):
    section = playground.page.locator(".what-if")
    section.get_by_role("button").click()
    section.locator(".shaded").wait_for()
    return section


def answering(page, probability_of):
    """Have every request answered by its state."""

    def fulfil(route):
        state = json.loads(route.request.post_data)["state"]
        yes = probability_of(state)
        answer = {"type": "noul", "noul": yes, "confidence": 0.5}
        answer["x_detail"] = [{"options": ["Yes", "No"], "probabilities": [yes, 1 - yes], "orders": []}]
        usage = {"input_tokens": 9, "output_tokens": 1}
        route.fulfill(json={"model": "toy", "answers": {"wants_refund": answer}, "usage": usage})

    page.route("**/v1/systemone", fulfil)


def only_refund(playground):
    """One question is left."""
    while playground.cards.count() > 1:
        playground.cards.last.get_by_role("button", name="Remove question").click()


def test_which_sentence_carries_the_answer(shown, open_page):
    playground = Playground(open_page(f"{shown.url}/playground"))
    asked = []

    def probability_of(state):
        asked.append(state)
        return 0.2 + 0.5 * ("refund" in state) + 0.1 * ("twice" in state)

    answering(playground.page, probability_of)
    only_refund(playground)
    playground.write_state(STATE)
    playground.run()
    assert [STATE] == asked
    assert "Ask without each sentence (3 calls)" == playground.page.locator(".what-if button").text_content()
    section = what_if(playground)
    assert {
        "It rains today! Please refund me.",
        "I was charged twice. Please refund me.",
        "I was charged twice. It rains today! ",
    } == set(asked[1:])
    marks = section.locator("mark")
    assert ["I was charged twice. ", "It rains today! ", "Please refund me."] == marks.all_text_contents()
    shares = [float(mark.evaluate("(one) => one.style.getPropertyValue('--share')")) for mark in marks.all()]
    assert all(math.isclose(a, b, abs_tol=1e-9) for a, b in zip([0.1, 0.0, 0.5], shares, strict=True))
    assert [
        "Please refund me. – without it P(yes) is lower: 30.0%, not 80.0%",
        "I was charged twice. – without it P(yes) is lower: 70.0%, not 80.0%",
    ] == section.locator(".strongest li").all_text_contents()


def test_a_chat_is_taken_apart_by_what_its_messages_say(shown, open_page):
    playground = Playground(open_page(f"{shown.url}/playground"))
    asked = []

    def probability_of(state):
        asked.append(state)
        return 0.5 - 0.3 * any("thanks" in one["content"] for one in state)

    answering(playground.page, probability_of)
    only_refund(playground)
    chat = [{"role": "user", "content": "Refund me. Now!"}, {"role": "user", "content": "No, thanks."}]
    playground.write_state(json.dumps(chat), "json")
    playground.run()
    section = what_if(playground)
    assert 4 == len(asked)
    assert {"user"} == {message["role"] for state in asked for message in state}
    assert ["No, thanks. – without it P(yes) is higher: 50.0%, not 20.0%"] == section.locator(
        ".strongest li"
    ).all_text_contents()
    assert [False, False, True] == [
        mark.evaluate("(one) => one.classList.contains('against')") for mark in section.locator("mark").all()
    ]


def test_many_sentences_are_left_out_several_at_a_time(shown, open_page):
    playground = Playground(open_page(f"{shown.url}/playground"))
    answering(playground.page, lambda state: 0.5)
    only_refund(playground)
    playground.write_state("It rains. " * 100)
    playground.run()
    section = playground.page.locator(".what-if")
    assert "Ask without each 2 sentences (50 calls)" == section.get_by_role("button").text_content()
    what_if(playground)
    assert "No part of the state moves this answer alone." in section.text_content()


def test_one_sentence_cannot_be_taken_apart(shown, open_page):
    playground = Playground(open_page(f"{shown.url}/playground"))
    playground.write_state("Refund me.")
    playground.run()
    assert 0 == playground.page.locator(".what-if").count()
