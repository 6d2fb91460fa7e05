"""Rows from files: what is read, and which row and field an error names."""

from __future__ import annotations

import json
from datetime import date

import polars as pl
import pytest

from openjev_core import RequestError, StartupError
from openjev_core.datasets import tables
from openjev_core.datasets.rows import Columns, read_questions, read_rows

QUESTIONS = {"urgent": {"type": "noul", "instructions": "Urgent?"}}


def row(**fields):
    return {"state": "A state.", "questions": QUESTIONS, "labels": {"urgent": True}, **fields}


@pytest.fixture
def write(tmp_path):
    def to(name, content):
        path = tmp_path / name
        if isinstance(content, list):
            content = "".join(json.dumps(entry) + "\n" for entry in content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return to


def refusal(path, columns=None):
    with pytest.raises(RequestError) as refused:
        read_rows(path, columns or Columns())
    return str(refused.value).replace(f"{path.parent}/", "")


def test_lines_are_rows(write):
    path = write("data.jsonl", json.dumps(row(id="one")) + "\n\n" + json.dumps(row(id=2)) + "\n")

    first, second = read_rows(path, Columns())

    assert (1, "data.jsonl line 1", "one") == (first.number, first.place, first.id)
    assert (2, "data.jsonl line 3", "2") == (second.number, second.place, second.id)
    assert "A state." == first.state
    assert QUESTIONS == first.questions
    assert {"urgent": True} == first.labels


def test_a_last_line_needs_no_end(write):
    assert 1 == len(read_rows(write("data.jsonl", json.dumps(row())), Columns()))


def test_a_byte_order_mark_is_no_part_of_the_first_line(write):
    path = write("data.jsonl", b"\xef\xbb\xbf" + json.dumps(row(id="one")).encode())

    assert ["one"] == [one.id for one in read_rows(path, Columns())]


def test_rows_without_ids_are_known_by_number(write):
    assert ["1", "2"] == [one.id for one in read_rows(write("data.jsonl", [row(), row()]), Columns())]


def test_a_table_has_its_columns_mapped(write):
    path = write("data.csv", '\ufeffticket,text,truth\n7,"Say ""please"",\nor not.",true\n8,Now!,\n')
    columns = Columns(state=("text",), id="ticket", labels={"urgent": "truth"}, questions=QUESTIONS)

    first, second = read_rows(path, columns)

    assert 'Say "please",\nor not.' == first.state
    assert ("7", "data.csv line 2") == (first.id, first.place)
    assert ("8", "data.csv line 4") == (second.id, second.place)
    assert {"urgent": "true"} == first.labels
    assert {} == second.labels


def test_a_cell_may_be_long(write):
    (one,) = read_rows(write("data.csv", f'state\n"{"long " * 60_000}"\n'), Columns(questions=QUESTIONS))

    assert 300_000 == len(one.state)


def test_several_columns_make_an_object(write):
    path = write("data.tsv", "subject\tbody\nHelp\tIt broke\n")

    (one,) = read_rows(path, Columns(state=("subject", "body"), questions=QUESTIONS))

    assert {"subject": "Help", "body": "It broke"} == one.state


def test_parquet_is_read_with_its_types(tmp_path):
    path = tmp_path / "data.parquet"
    frame = pl.DataFrame(
        {"state": [{"text": "Now!", "on": date(2026, 1, 2)}], "questions": [json.dumps(QUESTIONS)], "truth": [True]}
    )
    frame.write_parquet(path)

    (one,) = read_rows(path, Columns(labels={"urgent": "truth"}))

    assert {"text": "Now!", "on": "2026-01-02"} == one.state
    assert QUESTIONS == one.questions
    assert {"urgent": True} == one.labels


def test_parquet_that_json_cannot_say_is_refused(tmp_path):
    path = tmp_path / "data.parquet"
    pl.DataFrame({"state": [[1.0, float("nan")]]}).write_parquet(path)

    assert "data.parquet row 1: state.1: holds nan" in refusal(path, Columns(questions=QUESTIONS))


def test_what_is_no_parquet_is_refused(write):
    assert "data.parquet: is no Parquet file" in refusal(write("data.parquet", b"PAR1"))


def test_a_missing_library_says_how_to_get_it(write, monkeypatch):
    def missing(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(tables, "import_module", missing)

    with pytest.raises(StartupError, match=r"Parquet files need polars .*pip install 'openjev\[eval\]'"):
        read_rows(write("data.parquet", b""), Columns())


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("data.jsonl", "", "data.jsonl: holds no rows"),
        ("data.jsonl", "\n \n", "data.jsonl: holds no rows"),
        ("data.csv", "state\n", "data.csv: holds no rows"),
        ("data.txt", "x", "data.txt: a file of rows ends in one of"),
        ("data.jsonl", [row(), [1]], "data.jsonl line 2: expected one whole JSON object"),
        (
            "data.jsonl",
            json.dumps(row()) + "\n{nope\n",
            "data.jsonl line 2: expected one whole JSON object in each line (`jq -c` writes them so): the line",
        ),
        ("data.jsonl", b'{"state": "\xff"}\n', "data.jsonl: is not valid UTF-8"),
        ("data.csv", b"state\n\xff\n", "data.csv: is not valid UTF-8"),
        ("data.csv", 'state\n"open\n', "data.csv: line 2 is no CSV"),
        ("data.csv", "a,a\n1,2\n", "data.csv: the header has these columns twice: a"),
        ("data.csv", "state,questions\nx\n", "data.csv line 2: expected 2 columns as in the header, found 1"),
        ("data.jsonl", [row(), {"state": "x", "labels": {}}], "data.jsonl line 2: questions: missing"),
        ("data.jsonl", [row(), row(extra=1)], "data.jsonl line 2: extra: the first row does not have this field"),
        ("data.jsonl", [{"text": "x"}], "data.jsonl: has no column 'state'; it has: text"),
        ("data.jsonl", [{"state": "x"}], "data.jsonl: has no column 'questions'"),
        (
            "data.jsonl",
            [row(state=None)],
            "data.jsonl line 1: state: expected a string, an object or an array as the state, found null",
        ),
        ("data.jsonl", [row(questions=[])], "data.jsonl line 1: questions: expected an object"),
        ("data.jsonl", [row(questions={})], "data.jsonl line 1: questions: expected at least one"),
        ("data.jsonl", [row(questions="{")], "questions: expected an object, or its JSON text: the text is not JSON"),
        ("data.jsonl", [row(labels={"other": 1})], "data.jsonl line 1: labels.other: a label for a question that"),
        ("data.jsonl", [row(id="x"), row(id="x")], "data.jsonl line 2: id: the id 'x' is that of data.jsonl line 1"),
        ("data.jsonl", [row(id=None)], "data.jsonl line 1: id: expected a non-empty string or an integer"),
    ],
)
def test_bad_rows_are_named(write, name, content, words):
    assert words in refusal(write(name, content))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (Columns(state=("text",)), "data.jsonl: has no column 'text'; it has: state, questions, labels"),
        (Columns(labels={"urgent": "truth"}), "data.jsonl: has no column 'truth'"),
        (Columns(id="ticket"), "data.jsonl: has no column 'ticket'"),
        (Columns(questions=QUESTIONS), "data.jsonl: has questions of its own in each row; leave out --questions"),
        (Columns(labels={"urgent": "state"}), "data.jsonl: has labels of its own in each row; leave out --label"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(write, columns, words):
    assert words in refusal(write("data.jsonl", [row()]), columns)


def test_a_missing_file_is_named(tmp_path):
    assert "none.jsonl: cannot be read: No such file" in refusal(tmp_path / "none.jsonl")


def test_questions_for_all_rows_come_from_a_file(write):
    assert QUESTIONS == read_questions(write("questions.json", json.dumps(QUESTIONS)))


@pytest.mark.parametrize("content", ["[]", "{}", "{", '"x"'])
def test_a_file_of_no_questions_is_refused(write, content):
    with pytest.raises(RequestError, match=r"questions\.json: (expected a JSON object|the file is not JSON)"):
        read_questions(write("questions.json", content))


def test_a_digest_tells_rows_apart(write):
    rows = read_rows(write("d.jsonl", [row(), row(state="x"), row(labels={"urgent": False})]), Columns())

    assert 3 == len({one.digest for one in rows})
