"""What is wrong stands at the field that it is about."""

from __future__ import annotations

import pytest
from playground_page import REFUSED, Playground

pytestmark = pytest.mark.browser


@pytest.fixture
def playground(toy, open_page):
    return Playground(open_page(f"{toy.url}/playground", allowed=(REFUSED,)))


def refused(playground):
    """Run; the server must refuse. Returns its problems."""
    with playground.page.expect_response("**/v1/systemone") as caught:
        playground.page.keyboard.press("Control+Enter")
    playground.page.wait_for_selector("#evaluation [role=alert]")
    assert 422 == caught.value.status
    return caught.value.json()["detail"]


def not_sent(playground):
    """Run; the page itself must see what is wrong."""
    asked = []
    playground.page.on("request", lambda request: asked.append(request.url))
    playground.page.keyboard.press("Control+Enter")
    playground.page.wait_for_selector("#evaluation [role=alert]")
    assert [] == asked
    return playground.problems()


def test_the_servers_problems_stand_at_their_fields(playground, keep):
    score = playground.cards.nth(2)
    for _ in range(3):
        score.get_by_role("button", name="Remove Criteria 2").click()
    noul = playground.cards.nth(0)
    noul.get_by_label("Instructions", exact=True).fill("")
    detail = refused(playground)
    problems = playground.problems()
    by_path = {tuple(problem["loc"][1:3]): problem["msg"] for problem in detail}
    assert set(by_path.values()) == set(problems.values())
    assert all(one in playground.page.locator("#evaluation [role=alert]").text_content() for one in by_path.values())
    # Whoever mends one problem need not look for the field.
    focused = playground.page.evaluate("document.activeElement.getAttribute('aria-invalid')")
    assert "true" == focused
    keep(playground.page, "playground-problems")


def test_a_problem_deep_inside_opens_what_hides_it(playground):
    playground.example("A conversation")
    card = playground.cards.nth(0)
    card.get_by_role("button", name="True: send as JSON").click()
    card.get_by_label("True", exact=True).fill("17")
    card.locator("details > summary").click()
    assert not card.get_by_label("True", exact=True).is_visible()
    (problem,) = refused(playground)
    assert ["body", "questions", "broke_rule", "criteria", "true"] == problem["loc"]
    assert {"True": problem["msg"]} == playground.problems()
    assert card.get_by_label("True", exact=True).is_visible()


def test_a_problem_of_the_state_stands_at_the_message(playground):
    playground.example("A conversation")
    page = playground.page
    page.check("[name=state-mode][value=json]", force=True)
    page.fill(".state-text", '[{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]')
    (problem,) = refused(playground)
    assert [problem["msg"]] == list(playground.problems().values())


def test_a_problem_of_a_chat_stands_at_its_message(playground):
    playground.example("A conversation")
    detail = [
        {"loc": ["body", "state", 2, "content"], "msg": "the third", "type": "value_error"},
        {"loc": ["body", "state", 0, "role"], "msg": "the first role", "type": "value_error"},
        {"loc": ["body", "state", 3, "name", 0], "msg": "somewhere in the fourth", "type": "value_error"},
        {"loc": ["body", "x_unknown"], "msg": "anywhere", "type": "value_error"},
    ]
    playground.page.route("**/v1/systemone", lambda route: route.fulfill(status=422, json={"detail": detail}))
    refused(playground)
    problems = playground.problems()
    assert "the third" == problems["Text of message 3"]
    assert "the first role" in problems["Role of message 1"]
    assert "somewhere in the fourth" == problems["Role of message 4"]
    assert "anywhere" in playground.page.locator("#evaluation [role=alert]").text_content()


def test_what_the_page_can_see_is_not_sent(playground):
    playground.write_state('{"a": 1,\n "b": }', "json")
    problem = not_sent(playground)
    assert "line 2, column 7" in next(iter(problem.values()))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "write the state as JSON first"),
        ('{"a": 1, "a": 2}', 'each key once, and not "a" again'),
        ("[1, 2", "at the end, expected a comma or ]"),
        ("{'a': 1}", "a key in double quotes"),
        ("[01]", "a value"),
        ("NaN", "a value"),
        ('"a\nb"', "a string that ends with"),
        ("[1] x", "nothing more after the value"),
        ("[" * 101, "nested deeper than 100 levels"),
    ],
)
def test_json_that_is_none(playground, text, said):
    playground.write_state(text, "json")
    (message,) = not_sent(playground).values()
    assert said in message


def test_a_problem_goes_when_its_field_is_edited(playground):
    page = playground.page
    page.fill("[aria-label='Name of question 2']", "")
    page.fill("[aria-label='Name of question 3']", "")
    not_sent(playground)
    notice = page.locator("#evaluation [role=alert]")
    assert 2 == notice.locator("li").count()
    page.fill("[aria-label='Name of question 2']", "team")
    assert ["Name of question 3"] == list(playground.problems())
    assert 1 == notice.locator("li").count()
    page.fill("[aria-label='Name of question 3']", "frustration")
    assert {} == playground.problems()
    assert 0 == notice.count()


def test_a_problem_of_the_whole_state_stands_at_its_text(playground):
    detail = [{"loc": ["body", "state"], "msg": "no state of mine", "type": "value_error"}]
    playground.page.route("**/v1/systemone", lambda route: route.fulfill(status=422, json={"detail": detail}))
    refused(playground)
    assert ["no state of mine"] == list(playground.problems().values())
    assert "state-text" == playground.page.evaluate("document.activeElement.className")


def test_problems_show_whichever_tab_is_open(playground):
    playground.page.fill("[aria-label='Name of question 2']", "")
    for press in ("#link", "#save"):
        playground.page.click("#tab-code")
        playground.page.click(press)
        playground.page.wait_for_selector("#evaluation [role=alert]", state="visible")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<html>A proxy says hello.</html>", "the server answered 200 with no JSON object"),
        ("[]", "The server sent no answer to this question."),
        ('{"model": "toy", "answers": {}}', "The server sent no answer to this question."),
        ("null", "the server answered 200 with no JSON object"),
    ],
)
def test_a_reply_that_is_none_is_said_to_be_one(playground, body, said):
    playground.page.route("**/v1/systemone", lambda route: route.fulfill(status=200, body=body))
    playground.page.keyboard.press("Control+Enter")
    playground.page.wait_for_selector(f"#evaluation >> text={said}")


def test_the_server_is_reachable_again_after_a_success(playground):
    page = playground.page
    page.route("**/health", lambda route: route.fulfill(status=502))
    page.route("**/v1/systemone", lambda route: route.fulfill(status=502))
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#model[data-status=unavailable]")
    page.unroute_all()
    playground.run()
    page.wait_for_selector("#model[data-status=ok]")


def test_names_that_clash_or_lack(playground):
    page = playground.page
    page.fill("[aria-label='Name of question 2']", "wants_refund")
    assert {"Name of question 2": "two questions have this name; names must differ"} == not_sent(playground)
    page.fill("[aria-label='Name of question 2']", "")
    problems = not_sent(playground)
    assert {"Name of question 2": "a name is needed here: the answer comes under it"} == problems
    page.fill("[aria-label='Name of question 2']", "team")
    choice = playground.cards.nth(1)
    choice.get_by_label("Criteria, name 2").fill("billing")
    assert {"Criteria, name 2": "this name stands twice; names must differ"} == not_sent(playground)
    choice.get_by_label("Criteria, name 2").fill("technical")
    playground.run()
    assert {} == playground.problems()


def test_an_option_may_have_the_empty_name_once(playground):
    choice = playground.cards.nth(1)
    choice.get_by_label("Criteria, name 2").fill("")
    playground.run()
    choice.get_by_label("Criteria, name 3").fill("")
    assert {"Criteria, name 3": "this name stands twice; names must differ"} == not_sent(playground)
    choice.get_by_label("Criteria, value 3", exact=True).fill("")
    assert {"Criteria, name 3": "this row is empty; fill it in or remove it"} == not_sent(playground)


def test_rows_left_empty(playground):
    playground.example("An empty page")
    assert "add a question first" in playground_alert(playground)
    playground.add("score")
    problems = not_sent(playground)
    assert {"Criteria, item 0", "Criteria, item 1"} == set(problems)


def playground_alert(playground):
    playground.page.keyboard.press("Control+Enter")
    return playground.page.locator("#evaluation [role=alert]").text_content()
