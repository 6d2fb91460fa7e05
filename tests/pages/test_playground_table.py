"""A file of rows: each is asked, and what comes back can be sorted, filtered, measured and taken away."""

from __future__ import annotations

import csv
import json

import pytest
from playground_page import REFUSED, Playground

pytestmark = pytest.mark.browser

LATE = {"type": "noul", "instructions": "Is it late?"}
TEAM = {"type": "choice", "criteria": {"billing": "Money", "sales": "New contracts"}}
P_YES = {"first": 0.9, "second": 0.2, "third": 0.6}
CSV = 'ticket,text,late\r\n1,first,yes\r\n2,"second, and ""last""",yes\r\n3,third,\r\n'


@pytest.fixture
def playground(toy, open_page):
    return Playground(open_page(f"{toy.url}/playground", allowed=(REFUSED,)))


def answered_by(playground, answers):
    """Have the server answer as ``answers(state, questions)`` says, or refuse with a status. Returns what is sent."""
    sent = []

    def answer(route):
        request = json.loads(route.request.post_data)
        sent.append(request)
        found = answers(request["state"], request["questions"])
        if isinstance(found, int):
            route.fulfill(status=found, json={"detail": {"message": "no"}}, headers={"retry-after": "0"})
        else:
            route.fulfill(json={"model": "toy", "answers": found, "usage": {"input_tokens": 1, "output_tokens": 1}})

    playground.page.route("**/v1/systemone", answer)
    return sent


def late(state, questions):
    return {name: {"type": "noul", "noul": P_YES[state.split(",")[0]]} for name in questions}


def ask_all(playground, count, timeout=15_000):
    playground.page.click("text=Ask about each row")
    playground.page.wait_for_selector(f"#toast >> text=Answered {count} rows", timeout=timeout)


def shown(playground):
    """The rows of the page: number, state, and the answers' texts."""
    found = []
    for row in playground.page.locator(".rows-table tbody tr").all():
        texts = (row.locator(place).all_text_contents() for place in ("th", ".row-open", ".cell-text"))
        found.append(tuple(text for some in texts for text in some))
    return found


def status(playground):
    """What the table says of its progress."""
    return playground.page.locator(".table [role=status]").first.text_content()


def with_question(playground, question):
    playground.drop("request.json", json.dumps({"state": "x", "questions": {"late": question}}))
    playground.page.wait_for_selector("#toast >> text=Opened request.json")


def test_each_row_of_a_csv_is_asked_the_forms_questions(playground, keep):
    with_question(playground, LATE)
    sent = answered_by(playground, late)
    playground.drop("tickets.csv", CSV)
    ask_all(playground, 3)
    texts = ["first", 'second, and "last"', "third"]
    assert sorted(texts) == sorted(request["state"] for request in sent)
    assert [{"late": LATE}] * 3 == [request["questions"] for request in sent]
    assert [
        ("1", "first", "yes 90.0%"),
        ("2", 'second, and "last"', "no 80.0%"),
        ("3", "third", "yes 60.0%"),
    ] == shown(playground)
    assert ["right", "label: yes"] == playground.page.locator(".rows-table .mark").all_text_contents()
    keep(playground.page, "playground-table")


def test_rows_are_sorted_and_filtered(playground):
    with_question(playground, LATE)
    answered_by(playground, late)
    playground.drop("tickets.csv", CSV)
    ask_all(playground, 3)
    column = playground.page.get_by_role("button", name="late")
    column.click()
    assert ["1", "3", "2"] == [row[0] for row in shown(playground)]
    assert "descending" == playground.page.locator(".rows-table [aria-sort]").nth(1).get_attribute("aria-sort")
    column.click()
    assert ["2", "3", "1"] == [row[0] for row in shown(playground)]
    playground.page.get_by_label("Filter").fill("LAST")
    assert ["2"] == [row[0] for row in shown(playground)]
    playground.page.get_by_label("Filter").fill("")
    playground.page.get_by_label("Only wrong or refused").check()
    assert ["2"] == [row[0] for row in shown(playground)]


def test_answers_are_measured_against_the_labels(playground):
    with_question(playground, LATE)
    answered_by(playground, late)
    playground.drop("tickets.csv", CSV)
    ask_all(playground, 3)
    card = playground.page.locator(".measures .card")
    assert "50.0% right: 1 of 2" == card.locator(".figure").text_content()
    confusion = [row.locator("th, td").all_text_contents() for row in card.locator("tr").all()]
    assert [["", "no", "yes"], ["no", "0", "0"], ["yes", "1", "1"]] == confusion
    slider = card.get_by_label("Least probability of late to act on")
    assert "From 0% on: 2 of 2 answers (100%), 1 of them wrong (50.0%)" == card.locator(".threshold p").text_content()
    slider.fill("0.85")
    assert "From 85% on: 1 of 2 answers (50%), 0 of them wrong (0.0%)" == card.locator(".threshold p").text_content()
    slider.fill("0.95")
    assert "From 95% on: 0 of 2 answers (0%), no answer is left" == card.locator(".threshold p").text_content()


def test_rows_of_jsonl_have_their_own_questions_and_labels(playground):
    rows = [
        {"state": {"2": 1.5, "1": "x"}, "questions": {"team": TEAM}, "labels": {"team": "Sales"}},
        {"state": "first", "questions": {"late": LATE}, "labels": {"late": True}},
    ]

    def answers(state, questions):
        if "late" in questions:
            return late(state, questions)
        return {"team": {"type": "choice", "choice": "billing", "probabilities": {"billing": 0.7, "sales": 0.3}}}

    sent = answered_by(playground, answers)
    playground.drop("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    ask_all(playground, 2)
    assert [(row["state"], row["questions"]) for row in rows] == sorted(
        ((request["state"], request["questions"]) for request in sent), key=lambda pair: isinstance(pair[0], str)
    )
    assert ["label: sales", "right"] == playground.page.locator(".rows-table .mark").all_text_contents()


def test_answers_are_saved_in_the_columns_of_a_batch(playground):
    with_question(playground, LATE)
    answered_by(playground, lambda state, questions: 422 if state == "third" else late(state, questions))
    playground.drop("tickets.csv", CSV)
    ask_all(playground, 3)
    assert "3 of 3 rows answered, 1 of them refused" == status(playground)
    expected = [
        {"ticket": "1", "text": "first", "late": "yes", "late.noul": "0.9", "error": ""},
        {"ticket": "2", "text": 'second, and "last"', "late": "yes", "late.noul": "0.2", "error": ""},
        {"ticket": "3", "text": "third", "late": "", "late.noul": "", "error": "no"},
    ]
    with playground.page.expect_download() as caught:
        playground.page.click("text=Save as CSV")
    assert "tickets-answers.csv" == caught.value.suggested_filename
    with caught.value.path().open(encoding="utf-8", newline="") as file:
        assert expected == list(csv.DictReader(file))
    with playground.page.expect_download() as caught:
        playground.page.click("text=Save as JSONL")
    lines = [json.loads(line) for line in caught.value.path().read_text(encoding="utf-8").splitlines()]
    assert 0.9 == lines[0]["late.noul"]
    assert {"ticket": "3", "text": "third", "late": "", "error": "no"} == lines[2]


def test_a_busy_server_is_asked_again(playground):
    with_question(playground, LATE)
    refusals = [529, 503]
    sent = answered_by(playground, lambda state, questions: refusals.pop() if refusals else late(state, questions))
    playground.drop("tickets.csv", CSV)
    ask_all(playground, 3)
    assert 5 == len(sent)
    assert "3 of 3 rows answered" == status(playground)


def test_a_run_over_rows_can_be_stopped(toy, playground):
    with_question(playground, LATE)
    playground.drop("tickets.csv", CSV)
    toy.backend.seconds = 5.0
    try:
        playground.page.click("text=Ask about each row")
        playground.page.click("#table >> text=Stop")
        playground.page.wait_for_selector("text=Ask about each row")
    finally:
        toy.backend.seconds = 0.0
    assert "0 of 3 rows answered" == status(playground)


def test_a_row_opens_in_the_form(playground):
    with_question(playground, LATE)
    playground.drop("tickets.csv", CSV)
    playground.page.locator(".row-open").nth(1).click()
    assert 'second, and "last"' == playground.page.locator(".state-text").input_value()
    assert ["late"] == playground.ids()


def test_the_column_of_the_state_can_be_chosen(playground):
    with_question(playground, LATE)
    sent = answered_by(playground, lambda state, questions: {"late": {"type": "noul", "noul": 0.5}})
    playground.drop("tickets.csv", CSV)
    playground.page.get_by_label("Column of the state").select_option("ticket")
    ask_all(playground, 3)
    assert ["1", "2", "3"] == sorted(request["state"] for request in sent)


def test_a_thousand_rows_are_asked_and_paged(playground):
    with_question(playground, LATE)
    playground.drop("many.csv", "text\n" + "first\n" * 1000)
    ask_all(playground, 1000, timeout=100_000)
    assert 100 == playground.page.locator(".rows-table tbody tr").count()
    assert "Rows 1 to 100 of 1000" == playground.page.locator(".pages .hint").text_content()
    playground.page.get_by_role("button", name="Next", exact=True).click()
    assert ("101", "first") == shown(playground)[0][:2]
    assert 1 == len({row[2] for row in shown(playground)})


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "text\n", "a.csv cannot be opened: it has no rows below its header"),
        ("a.csv", "text,text\na,b\n", "two of its columns have one name"),
        ("a.csv", "text,n\na\n", "row 1 has 1 cells, where the header has 2"),
        ("a.csv", 'text\n"a\n', "row 1: a quote is opened and never closed"),
        ("a.csv", 'text\n"a"b\n', "row 1: text after a closing quote"),
        ("a.jsonl", '{"state": "a"}\n[1]\n', "line 2: a row is a JSON object"),
        ("a.jsonl", '{"state": "a"}\n{"state"\n', "line 2: this is no JSON"),
        ("a.jsonl", "", "it has no rows"),
    ],
)
def test_rows_that_cannot_be_read_are_said_so(playground, name, content, said):
    playground.drop(name, content)
    playground.page.wait_for_selector("#toast .toast")
    assert said in playground.page.locator("#toast").text_content()
    assert not playground.page.locator("#table").is_visible()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "text;n\na, b;1\n"),
        ("a.tsv", "text\tn\na, b\t1\n"),
        ("a.csv", '\ufefftext,n\r\n"a, b",1'),
    ],
)
def test_cells_have_the_delimiter_of_the_header(playground, name, content):
    with_question(playground, LATE)
    playground.drop(name, content)
    playground.page.wait_for_selector(".rows-table")
    assert [("1", "a, b")] == [row[:2] for row in shown(playground)]
