"""The pages for everyone: axe finds nothing, and the keyboard is enough."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from live_server import live_server
from playground_page import REFUSED, Playground

from openjev_core.api.pages import routes

pytestmark = pytest.mark.browser


def faults(page, context=None):
    """What axe finds, best practices included, as readable lines."""
    results = Axe().run(page, context=context).response
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in results["violations"]
        for node in one["nodes"]
    ]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1360), ("dark", 390)])
def test_axe_finds_nothing_in_any_view(toy, open_page, scheme, width):
    page = open_page(f"{toy.url}/playground", scheme=scheme, width=width, allowed=(REFUSED,), reduced_motion="reduce")
    playground = Playground(page)
    found = faults(page)
    playground.example("Every installed type")
    playground.run()
    page.locator("details").evaluate_all("all => all.forEach((one) => one.open = true)")
    found += faults(page)
    page.click("#tab-prompts")
    page.wait_for_selector("#prompt-list .prompt >> nth=1")
    found += faults(page)
    page.check("[name=prompt-form][value=tokens]", force=True)
    page.wait_for_selector(".token")
    found += faults(page)
    page.click("#tab-code")
    found += faults(page)
    for opener in ("#examples", "#key"):
        page.click(opener)
        page.wait_for_selector("dialog")
        found += faults(page)
        page.keyboard.press("Escape")
    playground.example("A conversation")
    page.fill("[aria-label='Name of question 2']", "broke_rule")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#evaluation [role=alert]")
    found += faults(page)
    assert [] == found


LABELLED = "text,wants_refund,team\r\nIt rains.,no,sales\r\nI was charged twice.,yes,billing\r\n"


def test_axe_finds_nothing_in_what_is_laid_beside_answers(toy, open_page):
    page = open_page(f"{toy.url}/playground", width=390, reduced_motion="reduce")
    playground = Playground(page)
    playground.write_state("I was charged twice. Please refund me.")
    page.select_option("#orders", "full")
    playground.run()
    page.click("#tab-runs")
    page.click("#runs .run .toggle")
    playground.write_state("It rains. Please come tomorrow.")
    playground.run()
    page.click("#tab-answers")
    page.locator(".orders-view").evaluate_all("all => all.forEach((one) => one.open = true)")
    page.locator(".orders-view .table-frame >> nth=2").wait_for()
    page.locator(".what-if button").click()
    page.locator(".what-if .shaded").wait_for()
    assert 3 == page.locator("table.compared").count()
    found = faults(page)
    playground.drop("rows.csv", LABELLED)
    page.click("text=Ask about each row")
    page.wait_for_selector("#toast >> text=Answered 2 rows")
    assert 2 == page.locator(".confusion").count()
    assert [] == found + faults(page)


@pytest.mark.parametrize(
    ("path", "wait", "left"),
    [
        ("/", "#reference h1", set()),
        # Swagger UI's groups are headings of the third level below one of the first.
        ("/docs", "#swagger .opblock", {"heading-order"}),
    ],
)
def test_axe_finds_nothing_in_the_reference(toy, open_page, path, wait, left):
    for scheme, width in (("light", 1360), ("light", 390), ("dark", 1360), ("dark", 390)):
        page = open_page(f"{toy.url}{path}", wait=wait, scheme=scheme, width=width)
        page.wait_for_load_state("networkidle")
        found = faults(page)
        assert left == {one.split(":")[0] for one in found}, found


def test_axe_finds_nothing_in_the_page_that_stands_in_for_a_missing_one(open_page, monkeypatch):
    monkeypatch.setattr(routes, "find", lambda _: None)
    with live_server() as bare:
        for scheme in ("light", "dark"):
            assert [] == faults(open_page(f"{bare.url}/", wait="h1", scheme=scheme))


def focused(page):
    return page.evaluate(
        """() => {
          const one = document.activeElement;
          return one.id || one.ariaLabel || one.textContent.trim();
        }"""
    )


def test_the_keyboard_is_enough(toy, open_page):
    page = open_page(f"{toy.url}/playground")
    press = page.keyboard.press
    press("Tab")
    assert "Skip to the answers" == focused(page)
    for _ in range(5):
        press("Tab")
    assert "key" == focused(page)
    press("Tab")
    press("ArrowRight")
    press("ArrowRight")
    assert page.locator("[aria-label='Text of message 1']").is_visible()
    press("ArrowLeft")
    press("ArrowLeft")
    press("Tab")
    page.keyboard.type("Typed. ")
    assert page.locator(".state-text").input_value().startswith(("Typed. ", "Hi, I was"))
    press("Tab")
    assert "Name of question 1" == focused(page)
    with page.expect_response("**/v1/systemone"):
        press("Control+Enter")
    page.wait_for_selector("#evaluation .answer")
    page.wait_for_function("document.querySelector('#spoken').textContent.startsWith('Answered 3 questions in ')")
    page.focus("#tab-answers")
    press("ArrowRight")
    assert "tab-prompts" == focused(page)
    assert page.locator("#prompts").is_visible()
    press("End")
    assert "tab-code" == focused(page)
    press("ArrowRight")
    assert "tab-answers" == focused(page)


def test_moving_and_removing_keep_the_focus_near(toy, open_page):
    page = open_page(f"{toy.url}/playground")
    page.focus("[aria-label='Move Criteria 1 down']")
    page.keyboard.press("Enter")
    assert "Move Criteria 2 down" == focused(page)
    page.keyboard.press("Enter")
    assert "Move Criteria 3 up" == focused(page)
    page.focus("[aria-label='Remove question 2']")
    page.keyboard.press("Enter")
    assert "Name of question 2" == focused(page)


def test_every_focus_can_be_seen(toy, open_page):
    page = open_page(f"{toy.url}/playground")
    seen = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        state = page.evaluate(
            """() => {
              const one = document.activeElement;
              const shown = one.matches(".segmented input") ? one.nextElementSibling : one;
              const style = getComputedStyle(shown);
              const box = shown.getBoundingClientRect();
              const bar = document.querySelector(".run-bar");
              const edge = bar.getBoundingClientRect().top + 1;
              const covered = !bar.contains(one) && one.closest("form") && box.bottom > edge;
              return [one.outerHTML.slice(0, 120), style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
                      box.bottom > 0 && box.top < innerHeight && !covered];
            }"""
        )
        if state[0] in seen and len(seen) > 30:
            break
        seen.add(state[0])
        assert [True, True] == state[1:], state
