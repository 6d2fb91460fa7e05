"""``openjev eval``: from rows to a report, here and over HTTP, interrupted and not."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re

import pytest
from live_server import live_server

QUESTIONS = {
    "team": {"type": "choice", "criteria": {"billing": "Payments", "technical": "Bugs", "sales": None}},
    "urgent": {"type": "noul", "instructions": "Urgent?"},
    "anger": {"type": "score", "criteria": ["calm", "cross", "furious"]},
}


def rows(count=12, **labels):
    return [
        {
            "id": f"t{number}",
            "state": f"Ticket {number}.",
            "questions": QUESTIONS,
            "labels": {
                "team": ["billing", "technical", "sales"][number % 3],
                "urgent": number % 2 == 0,
                "anger": number % 3,
                **labels,
            },
        }
        for number in range(count)
    ]


def lines(entries):
    return "".join(json.dumps(entry) + "\n" for entry in entries)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.jsonl").write_text(lines(rows()))
    return tmp_path / "data.jsonl"


def told(result):
    return " ".join(result.stderr.split())


@pytest.mark.usefixtures("toy")
def test_a_run_ends_in_a_report(openjev, data, tmp_path):
    result = openjev("eval", data, "--json", "report.json", "--html", "report.html", "--out", "table.csv")

    assert 0 == result.exit_code, result.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert {"in_data": 12, "answered": 12, "refused": []} == report["rows"]
    groups = {(group["by"], group["name"]): group for group in report["groups"]}
    assert {"accuracy", "macro_f1", "auroc", "log_loss", "brier", "ece", "adaptive_ece"} == set(
        groups["type", "noul"]["measures"]
    )
    assert "mae" in groups["type", "score"]["measures"]
    assert groups["type", "choice"]["few"]
    assert [("3 or more", "reversed", 12), ("3 or more", "shuffled", 12)] == [
        (one["options"], one["order"], one["count"]) for one in report["flips"]
    ]
    assert "type choice: 12 questions (few)" in result.stdout
    assert "12 rows are in data.eval.jsonl and table.csv" in told(result)
    assert "the report is in report.html" in told(result)
    page = (tmp_path / "report.html").read_text()
    assert not re.search(r"(src|href)=\"(?!#)", page)
    assert not re.search(r"url\((?!#)|@import|<link|<script [^>]", page)
    # One script, which sorts the tables, and a policy that lets that one run and no other.
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page
    assert ["header", "nav", "main", "footer"] == re.findall(r"<(header|nav|main|footer)\b", page)
    assert 2 * len(report["groups"]) == page.count("<svg")
    table = list(csv.DictReader((tmp_path / "table.csv").open(encoding="utf-8")))
    assert [f"t{number}" for number in range(12)] == [one["id"] for one in table]
    assert 1 == pytest.approx(
        sum(float(table[0][f"team.probabilities.{name}"]) for name in QUESTIONS["team"]["criteria"])
    )


@pytest.mark.usefixtures("toy")
def test_text_from_the_data_is_escaped_in_the_page(openjev, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    evil = "<script>alert(1)</script>-->"
    entry = {"state": "x", "questions": {evil: QUESTIONS["urgent"], "b": QUESTIONS["urgent"]}, "labels": {evil: True}}
    (tmp_path / "data.jsonl").write_text(lines([entry] * 3))
    entry["labels"]["b"] = False
    (tmp_path / "data.jsonl").write_text(lines([entry] * 3))

    assert 0 == openjev("eval", "data.jsonl", "--html", "report.html").exit_code
    page = (tmp_path / "report.html").read_text()
    assert 1 == page.count("<script")
    assert "&lt;script&gt;" in page


@pytest.mark.usefixtures("toy")
def test_json_takes_the_place_of_tables(openjev, data):
    result = openjev("eval", data, "--json", "-", "--no-reorder")

    assert [] == json.loads(result.stdout)["flips"]


@pytest.mark.usefixtures("toy")
def test_a_finished_run_is_reported_without_asking_again(openjev, data, tmp_path):
    first = openjev("eval", data, "--json", "-")
    found = [json.loads(first.stdout)]
    written = (tmp_path / "data.eval.jsonl").read_bytes()
    second = openjev("eval", data, "--json", "-")

    found.append(json.loads(second.stdout))
    assert 1 == len({json.dumps({**one, "made": {}}) for one in found})
    assert written == (tmp_path / "data.eval.jsonl").read_bytes()
    assert "12 of 12 rows were answered before" in told(second)


def test_a_run_that_was_cut_short_goes_on(openjev, data, tmp_path, toy):
    run = tmp_path / "data.eval.jsonl"
    openjev("eval", data, "--concurrency", "1")
    whole = run.read_bytes().splitlines(keepends=True)
    run.write_bytes(b"".join(whole[:5]) + whole[5][:20])

    result = openjev("eval", data, "--concurrency", "1", "--json", "-")

    assert 0 == result.exit_code
    assert "4 of 12 rows were answered before" in told(result)
    records = [json.loads(line) for line in run.read_text().splitlines()[1:]]
    assert list(range(1, 13)) == [record["row"] for record in records]


@pytest.mark.usefixtures("toy")
def test_columns_can_be_mapped(openjev, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("text,truth\nNow!,yes\nLater.,no\n")
    (tmp_path / "questions.json").write_text(json.dumps({"urgent": QUESTIONS["urgent"]}))
    flags = ("--questions", "questions.json", "--state-column", "text", "--label", "urgent=truth", "--json", "-")

    report = json.loads(openjev("eval", "data.csv", *flags).stdout)

    assert {"asked": 2, "labelled": 2} == report["questions"]


@pytest.mark.parametrize(
    ("content", "flags", "words"),
    [
        (
            lines(rows(2, team="marketing")),
            (),
            "data.jsonl line 1: labels.team: the label 'marketing' fits no option; ",
        ),
        (lines([*rows(1), {"text": "x"}]), (), "data.jsonl line 2: id: missing; the first row has it"),
        ("", (), "data.jsonl: holds no rows"),
        (lines(rows(1)), ("--label", "team"), "--label team: expected QUESTION=COLUMN"),
        (lines(rows(1)), ("--run", "data.jsonl"), "DATA and --run are both data.jsonl"),
        (lines(rows(1)), ("--out", "table.xlsx"), "table.xlsx: an export ends in one of"),
        (lines(rows(1)), ("--concurrency", "17"), "--concurrency 17: a model in this process takes up to 16"),
        (lines(rows(1)), ("--url", "http://x", "--profile", "m"), "--profile configures a model in this process"),
        (lines(rows(1)), ("--compare", "a", "b"), "--compare takes the files of two runs and no DATA"),
        (lines(rows(1)), ("--questions", "none.json"), "none.json: cannot be read"),
        (lines(rows(1)), ("--orders", "0"), "--orders: expected an integer from 1 up, or full, found '0'"),
    ],
)
@pytest.mark.usefixtures("toy")
def test_bad_input_is_told_and_nothing_is_asked(openjev, data, content, flags, words):
    data.write_text(content)

    result = openjev("eval", "data.jsonl", *flags)

    assert 2 == result.exit_code
    assert words in told(result)
    assert not data.with_name("data.eval.jsonl").exists()


def test_data_or_runs_must_be_given(openjev):
    result = openjev("eval")

    assert 2 == result.exit_code
    assert "DATA is missing" in told(result)


def test_refused_rows_are_told_at_the_end(openjev, data, toy):
    toy.max_prompt_tokens = 1200
    long = {**rows(1)[0], "id": "long", "state": "word " * 400}
    data.write_text(lines([*rows(3), long]))

    result = openjev("eval", data, "--json", "-")

    assert 1 == result.exit_code
    assert 3 == json.loads(result.stdout)["rows"]["answered"]
    assert "row 4 (long) was refused: " in told(result)
    assert "max_input_tokens" in told(result)


def test_a_server_is_asked_over_http(openjev, data):
    with live_server(orders=2) as server:
        result = openjev("eval", data, "--url", server.url, "--orders", "full", "--json", "-")

    assert 0 == result.exit_code, result.stderr
    report = json.loads(result.stdout)
    assert (server.url, "full") == (report["run"]["answered_by"], report["run"]["orders"])
    assert "toy/Toy-1" == report["run"]["model"]
    # Read in all orders, from a canonical one, no order of the options changes anything.
    assert [0.0, 0.0] == [one["rate"]["value"] for one in report["flips"]]


@pytest.mark.usefixtures("toy")
def test_two_runs_are_compared_in_pairs(openjev, data, tmp_path):
    openjev("eval", data, "--run", "a.jsonl")
    openjev("eval", data, "--run", "b.jsonl", "--orders", "full")

    result = openjev("eval", "--compare", "a.jsonl", "b.jsonl", "--json", "c.json", "--html", "c.html")

    assert 0 == result.exit_code, result.stderr
    comparison = json.loads((tmp_path / "c.json").read_text())
    assert {"compared": 36, "only_before": 0, "only_after": 0, "other_labels": 0, "other_states": 0} == comparison[
        "questions"
    ]
    group = comparison["groups"][0]
    measure = group["measures"]["accuracy"]
    assert pytest.approx(measure["after"]["value"] - measure["before"]["value"]) == measure["difference"]["value"]
    right = group["right"]
    assert pytest.approx(measure["difference"]["value"] * group["count"]) == (
        right["only_after"] - right["only_before"]
    )
    assert "36 labelled questions in both" in result.stdout
    assert "McNemar" in (tmp_path / "c.html").read_text()


@pytest.mark.usefixtures("toy")
def test_a_run_differs_from_itself_in_nothing(openjev, data, tmp_path):
    openjev("eval", data, "--run", "a.jsonl")
    (tmp_path / "b.jsonl").write_bytes((tmp_path / "a.jsonl").read_bytes())

    comparison = json.loads(openjev("eval", "--compare", "a.jsonl", "b.jsonl", "--json", "-").stdout)

    for group in comparison["groups"]:
        assert 1.0 == group["right"]["p"]
        assert {0.0} == {one["difference"]["value"] for one in group["measures"].values()}


@pytest.mark.usefixtures("toy")
def test_runs_that_share_no_row_are_not_compared(openjev, data, tmp_path):
    openjev("eval", data, "--run", "a.jsonl")
    data.write_text(lines([{**row, "id": f"other {row['id']}"} for row in rows()]))
    openjev("eval", data, "--run", "b.jsonl")

    result = openjev("eval", "--compare", "a.jsonl", "b.jsonl")

    assert 2 == result.exit_code
    assert "no labelled question in common" in told(result)


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(("named", "matched_by"), [(True, "id"), (False, "state")])
def test_two_wordings_of_a_question_are_compared_row_by_row(openjev, data, tmp_path, named, matched_by):
    for number, words in enumerate(("Urgent?", "Does this need an answer within the hour?")):
        entries = [{**row, "questions": {"urgent": {"type": "noul", "instructions": words}}} for row in rows(40)]
        for entry in entries:
            entry["labels"] = {"urgent": entry["labels"]["urgent"]}
            if not named:
                del entry["id"]
        # The second file has its rows in another order.
        data.write_text(lines(entries[::-1] if number else entries))
        openjev("eval", data, "--run", f"{number}.jsonl", "--no-reorder")

    result = openjev("eval", "--compare", "0.jsonl", "1.jsonl", "--json", "c.json")

    report = json.loads((tmp_path / "c.json").read_text())
    assert (40, matched_by) == (report["questions"]["compared"], report["matched_by"])
    assert (0, 0) == (report["questions"]["other_labels"], report["questions"]["other_states"])
    assert report["verdict"][0]["words"] in " ".join(result.stdout.split())


@pytest.mark.usefixtures("toy")
def test_rows_of_one_id_with_other_states_are_told(openjev, data):
    openjev("eval", data, "--run", "a.jsonl", "--no-reorder")
    data.write_text(lines([{**row, "state": f"Another {row['id']}."} for row in rows()]))
    openjev("eval", data, "--run", "b.jsonl", "--no-reorder")

    assert "12 rows of the same id have another state" in openjev("eval", "--compare", "a.jsonl", "b.jsonl").stdout


@pytest.mark.parametrize("content", ['{"openjev_run": 1, "command": "batch"}\n', "nope\n", ""])
def test_what_is_no_run_is_not_compared(openjev, tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text(content)
    (tmp_path / "b.jsonl").write_text(content)

    result = openjev("eval", "--compare", "a.jsonl", "b.jsonl")

    assert 2 == result.exit_code
    assert "a.jsonl" in told(result)


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("unlabelled", [0, 5])
def test_rows_that_nobody_labelled_have_no_labels_to_write(openjev, data, unlabelled):
    """The first row among them: one row does not tell which fields the others have."""
    entries = rows()
    del entries[unlabelled]["labels"]
    data.write_text(lines(entries))

    result = openjev("eval", "data.jsonl", "--json", "-")

    assert 0 == result.exit_code, result.stderr
    report = json.loads(result.stdout)
    assert (12, {"asked": 36, "labelled": 33}) == (report["rows"]["answered"], report["questions"])


@pytest.mark.usefixtures("toy")
def test_labelled_rows_come_from_standard_input(openjev, data, tmp_path):
    result = openjev("eval", "-", "--json", "-", input=lines(rows()))

    assert 0 == result.exit_code, result.stderr
    assert hashlib.sha256(data.read_bytes()).hexdigest() == json.loads(result.stdout)["made"]["sha256 of the data"]


@pytest.mark.usefixtures("toy")
def test_a_promise_is_made_and_held_against_fresh_rows(openjev, data, tmp_path):
    """On the command line and over HTTP: the toy knows nothing, so nothing is accepted."""
    data.write_text(lines(rows(240)))
    result = openjev("calibrate", data, "--out", "c.json", "--guarantee", "0.9", "--guarantee-confidence", "0.8")
    assert 0 == result.exit_code, result.stderr
    assert "accepted: 0.9 of the answers right, with 0.8 confidence" in result.stdout
    assert "noul 'Urgent?'" in result.stdout
    promise = json.loads((tmp_path / "c.json").read_text())["promise"]
    assert (0.9, 0.8, 3) == (promise["share"], promise["confidence"], len(promise["questions"]))

    result = openjev("eval", data, "--run", "e.jsonl", "--calibration", "c.json", "--json", "-", "--no-reorder")

    report = json.loads(result.stdout)
    assert {"question": 720, "type": 0, "none": 0} == report["calibrated"]
    found = report["promise"]
    assert (0.9, 0.8) == (found["share"], found["confidence"])
    assert {"team": 240, "urgent": 240, "anger": 240} == {one["name"]: one["answers"] for one in found["questions"]}
    with live_server(calibration="c.json") as server:
        over_http = openjev("eval", data, "--url", server.url, "--run", "h.jsonl", "--json", "-", "--no-reorder")
    assert found == json.loads(over_http.stdout)["promise"]
