"""Nothing that a person wrote or that was answered goes lost, and runs can be compared."""

from __future__ import annotations

import json

import pytest
from playground_page import REFUSED, Playground

from openjev_core.errors import BackendUnavailable

pytestmark = pytest.mark.browser


KEPT = """async () => {
    const open = indexedDB.open("openjev");
    const database = await new Promise((resolve) => { open.onsuccess = () => resolve(open.result); });
    const keys = database.transaction("runs").objectStore("runs").getAllKeys();
    const found = await new Promise((resolve) => { keys.onsuccess = () => resolve(keys.result); });
    database.close();
    return found;
}"""
"""The ids of the runs that the browser keeps, after all that is being written."""


@pytest.fixture
def playground(toy, open_page):
    return Playground(open_page(f"{toy.url}/playground", allowed=(REFUSED,)))


def answer_with(playground, answers):
    """Have the next runs answered so, whatever is asked."""
    body = {"model": "toy", "answers": answers, "usage": {"input_tokens": 10, "output_tokens": 4}}
    playground.page.route("**/v1/systemone", lambda route: route.fulfill(json=body))


def reload(playground):
    playground.page.reload()
    playground.page.wait_for_selector("#model[data-status]")


def runs(playground):
    playground.page.click("#tab-runs")
    return playground.page.locator("#runs .run")


def test_a_reload_keeps_the_answers(playground):
    playground.run()
    shown = playground.answers.all_text_contents()
    reload(playground)
    playground.page.wait_for_selector("#evaluation .answer")
    assert shown == playground.answers.all_text_contents()
    assert not playground.page.locator("#stale").is_visible()


def test_a_failure_keeps_the_answers(toy, playground):
    playground.run()
    shown = playground.answers.all_text_contents()
    toy.backend.error = BackendUnavailable("the backend is gone")
    try:
        playground.page.keyboard.press("Control+Enter")
        playground.page.wait_for_selector("#evaluation .notice >> text=Error 503")
    finally:
        toy.backend.error = None
    assert shown == playground.answers.all_text_contents()
    playground.run()
    assert 0 == playground.page.locator("#evaluation .notice").count()


def test_a_stopped_run_keeps_the_answers(toy, playground):
    playground.run()
    shown = playground.answers.all_text_contents()
    toy.backend.seconds = 5.0
    try:
        playground.page.click("#run")
        playground.page.click("#run.busy")
        playground.page.wait_for_selector("#evaluation >> text=Stopped.")
    finally:
        toy.backend.seconds = 0.0
    assert shown == playground.answers.all_text_contents()


def test_what_a_link_replaces_stays_among_the_runs(playground):
    page = playground.page
    page.click("#link")
    page.wait_for_selector("#toast >> text=Link copied")
    link = page.evaluate("navigator.clipboard.readText()")
    playground.write_state('{"half": ', "json")
    page.evaluate("link => { location.href = link }", link)
    page.wait_for_selector("#toast >> text=Opened the request of the link")
    assert page.locator("[name=state-mode][value=text]").is_checked()
    reload(playground)
    (run,) = runs(playground).all()
    assert "draft" == run.locator(".tag").text_content()
    run.get_by_role("button", name="Open").click()
    assert '{"half": ' == page.locator(".state-text").input_value()


def test_an_earlier_run_opens_with_its_answers(playground):
    playground.write_state("The first.")
    first, _ = playground.run()
    shown = playground.answers.all_text_contents()
    playground.write_state("The second, of another length.")
    playground.run()
    assert ["The second, of another length.", "The first."] == runs(playground).locator(".asked").all_text_contents()
    playground.page.locator("#runs .run").nth(1).get_by_role("button", name="Open").click()
    assert "The first." == playground.page.locator(".state-text").input_value()
    assert shown == playground.answers.all_text_contents()
    assert not playground.page.locator("#stale").is_visible()
    assert first == playground.run()[0]


def test_answers_are_compared_with_the_pinned_run(playground, keep):
    page = playground.page
    answers = {
        "wants_refund": {"type": "noul", "noul": 0.25},
        "team": {
            "type": "choice",
            "choice": "billing",
            "probabilities": {"billing": 0.5, "technical": 0.3, "sales": 0.2},
            "confidence": 0.4,
        },
        "frustration": {"type": "score", "score": 1.5, "legend": {"0": "a", "1": "b", "2": "c", "3": "d"}},
    }
    answer_with(playground, answers)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#evaluation .answer")
    runs(playground).first.get_by_role("button", name="Compare with").click()
    page.unroute("**/v1/systemone")
    answers["wants_refund"]["noul"] = 0.75
    answers["team"]["probabilities"] = {"billing": 0.5, "technical": 0.2, "sales": 0.3}
    answer_with(playground, answers)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#evaluation table.compared")
    tables = [
        [row.locator("th, td").all_text_contents() for row in table.locator("tbody tr").all()]
        for table in page.locator("#evaluation table.compared").all()
    ]
    assert [
        [["noul", "25.0%", "75.0%", "+50.0 points"]],
        [["technical", "30.0%", "20.0%", "−10.0 points"], ["sales", "20.0%", "30.0%", "+10.0 points"]],
    ] == tables
    assert "As in the pinned run." == playground.answers.nth(2).locator(".compared").text_content()
    keep(page, "playground-compared")
    reload(playground)
    page.wait_for_selector("#evaluation table.compared")
    runs(playground).nth(1).get_by_role("button", name="Compare with").click()
    page.click("#tab-answers")
    assert 0 == page.locator(".compared").count()


def test_runs_are_kept_only_while_a_person_wants_it(playground):
    playground.run()
    assert 1 == runs(playground).count()
    playground.page.get_by_label("Keep runs in this browser").uncheck()
    playground.run()
    assert 1 == runs(playground).count()
    playground.page.get_by_role("button", name="Clear").click()
    assert 0 == playground.page.locator("#runs .run").count()
    assert [] == playground.page.evaluate(KEPT)
    reload(playground)
    assert 0 == runs(playground).count()
    assert not playground.page.get_by_label("Keep runs in this browser").is_checked()


def test_the_oldest_run_that_is_not_pinned_goes_first(playground):
    page = playground.page
    playground.run()
    runs(playground).first.get_by_role("button", name="Compare with").click()
    added = """async () => {
        const open = indexedDB.open("openjev");
        const database = await new Promise((resolve) => { open.onsuccess = () => resolve(open.result); });
        const store = database.transaction("runs", "readwrite").objectStore("runs");
        const get = store.get(1);
        const first = await new Promise((resolve) => { get.onsuccess = () => resolve(get.result); });
        for (let id = 2; id <= 50; id += 1) store.put({ ...first, id, pinned: false });
        await new Promise((resolve) => { store.transaction.oncomplete = resolve; });
        database.close();
    }"""
    page.evaluate(added)
    reload(playground)
    playground.run()
    assert 50 == runs(playground).count()
    assert [1, *range(3, 52)] == page.evaluate(KEPT)


def test_a_browser_without_a_database_says_so(toy, open_page):
    page = open_page(f"{toy.url}/playground")
    page.add_init_script("Object.defineProperty(window, 'indexedDB', { get() { throw new Error('denied'); } })")
    playground = Playground(page)
    reload(playground)
    playground.run()
    assert 1 == runs(playground).count()
    assert "This browser keeps nothing" in page.locator("#runs").text_content()


def test_a_run_that_was_saved_is_opened_and_pinned(toy, playground, open_page, tmp_path):
    playground.write_state('{"2": 1.50, "1": 12345678901234567890123}', "json")
    sent, _ = playground.run()
    runs(playground)
    with playground.page.expect_download() as caught:
        playground.page.locator("#runs .run").first.get_by_role("button", name="Save").click()
    file = tmp_path / caught.value.suggested_filename
    caught.value.save_as(file)
    assert "run.json" == file.name
    assert json.loads(sent) == {**json.loads(file.read_text())["request"], "x_detail": True}

    other = Playground(open_page(f"{toy.url}/playground"))
    other.page.set_input_files("#file", file)
    other.page.wait_for_selector("#evaluation .answer")
    assert sent == other.run()[0]
    assert 3 == other.page.locator("#evaluation .compared").count()
