"""``openjev batch``: answers for files, each row once, whatever interrupts it."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time

import polars as pl
import pytest
import stamina
from live_server import live_server
from toy_model import ToyBackend

from openjev_core.errors import BackendUnavailable

QUESTIONS = {"urgent": {"type": "noul", "instructions": "Urgent?"}}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entries = [{"state": f"Ticket {number}.", "questions": QUESTIONS} for number in range(30)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    (tmp_path / "questions.json").write_text(json.dumps(QUESTIONS))
    return tmp_path


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


def told(result):
    return " ".join(result.stderr.split())


@pytest.mark.usefixtures("toy")
def test_every_row_is_answered_once(openjev, folder):
    result = openjev("batch", "data.jsonl")

    assert 0 == result.exit_code, result.stderr
    found = records(folder / "data.batch.jsonl")
    assert list(range(1, 31)) == sorted(record["row"] for record in found)
    assert all(0 <= record["answers"]["urgent"]["noul"] <= 1 for record in found)
    assert "30 rows are in data.batch.jsonl" in told(result)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl"])
@pytest.mark.usefixtures("toy")
def test_tables_go_in_and_out(openjev, folder, ending):
    pl.DataFrame({"text": ["Now!", "Later."], "when": [1, None]}).write_parquet(folder / "tickets.parquet")
    flags = ("--questions", "questions.json", "--state-column", "text", "--out", f"out.{ending}")

    result = openjev("batch", "tickets.parquet", *flags)

    assert 0 == result.exit_code, result.stderr
    out = folder / f"out.{ending}"
    if ending == "parquet":
        table = pl.read_parquet(out).to_dicts()
    elif ending == "jsonl":
        table = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        table = list(csv.DictReader(out.open(encoding="utf-8"), delimiter="\t" if ending == "tsv" else ","))
    assert ["text", "when", "urgent.noul"] == list(table[0])
    assert ["Now!", "Later."] == [row["text"] for row in table]
    assert table[1]["when"] in (None, "")
    answers = {record["row"]: record["answers"]["urgent"]["noul"] for record in records(folder / "tickets.batch.jsonl")}
    assert [answers[1], answers[2]] == [float(row["urgent.noul"]) for row in table]


@pytest.mark.usefixtures("toy")
def test_a_column_of_the_data_is_not_overwritten(openjev, folder):
    (folder / "tickets.csv").write_text("state,urgent.noul\nNow!,0.5\n")

    result = openjev("batch", "tickets.csv", "--questions", "questions.json", "--out", "out.csv")

    assert 2 == result.exit_code
    assert "the column 'urgent.noul' twice" in told(result)


@pytest.mark.usefixtures("toy")
def test_no_answer_is_overwritten_by_another(openjev, folder):
    def two(name):
        return {"type": "choice", "criteria": {name: None, "b": None}}

    (folder / "questions.json").write_text(json.dumps({"a": two("choice"), "a.probabilities": two("c")}))
    (folder / "tickets.csv").write_text("state\nNow!\n")

    result = openjev("batch", "tickets.csv", "--questions", "questions.json", "--out", "out.csv")

    assert 2 == result.exit_code
    assert "the column 'a.probabilities.choice' twice; rename one of the questions" in told(result)


@pytest.mark.usefixtures("toy")
def test_a_file_that_is_no_run_is_left_alone(openjev, folder):
    (folder / "notes.json").write_text('{"precious": true}')

    result = openjev("batch", "data.jsonl", "--run", "notes.json")

    assert 2 == result.exit_code
    assert "notes.json: this is no run of this program; use another file" in told(result)
    assert '{"precious": true}' == (folder / "notes.json").read_text()


@pytest.mark.usefixtures("toy")
def test_bad_questions_are_told_before_any_row_is_asked(openjev, folder):
    (folder / "data.jsonl").write_text(json.dumps({"state": "x", "questions": {"a": {"type": "noul"}}}) + "\n")

    result = openjev("batch", "data.jsonl")

    assert 2 == result.exit_code
    assert "data.jsonl line 1: questions.a.instructions: a noul needs instructions" in told(result)
    assert not (folder / "data.batch.jsonl").exists()


def test_a_backend_that_fails_ends_the_run_and_the_next_goes_on(openjev, folder, toy):
    openjev("batch", "data.jsonl", "--concurrency", "1")
    run = folder / "data.batch.jsonl"
    run.write_bytes(b"".join(run.read_bytes().splitlines(keepends=True)[:6]))
    toy.error = BackendUnavailable("gone")
    with stamina.set_testing(True, attempts=2):
        failed = openjev("batch", "data.jsonl")
    toy.error = None
    finished = openjev("batch", "data.jsonl")

    assert (1, 0) == (failed.exit_code, finished.exit_code)
    assert "trying again in 0.0 s: gone" in told(failed)
    assert "5 of 30 rows are answered and kept; the same command again goes on with the others" in told(failed)
    assert list(range(1, 31)) == sorted(record["row"] for record in records(run))


def test_a_type_that_only_the_server_has_is_left_to_it(openjev, folder):
    (folder / "data.jsonl").write_text(json.dumps({"state": "x", "questions": {"a": {"type": "bogus"}}}) + "\n")

    with live_server() as server:
        result = openjev("batch", "data.jsonl", "--url", server.url)

    assert 1 == result.exit_code
    assert "row 1 (1) was refused: 422: questions.a.type: unknown question type 'bogus'" in told(result)


def test_killed_half_way_nothing_is_lost_and_nothing_answered_twice(folder):
    run = folder / "data.batch.jsonl"
    with live_server(backend=ToyBackend(seconds=0.05)) as server:
        command = [sys.executable, "-c", "from openjev_core.cli import main; main()", "batch", "data.jsonl"]
        command += ["--url", server.url, "--concurrency", "2"]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 60
            while (not run.exists() or run.read_bytes().count(b"\n") < 6) and time.monotonic() < deadline:
                time.sleep(0.01)
            process.kill()
        assert -signal.SIGKILL == process.returncode
        before = run.read_bytes()
        finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    assert 0 == finished.returncode, finished.stderr
    whole = before[: before.rfind(b"\n") + 1]
    assert 6 <= whole.count(b"\n") < 31
    assert run.read_bytes().startswith(whole)
    assert list(range(1, 31)) == sorted(record["row"] for record in records(run))


@pytest.mark.usefixtures("toy")
def test_rows_come_from_standard_input(openjev, folder):
    rows = (folder / "data.jsonl").read_text()

    result = openjev("batch", "-", "--out", "out.jsonl", input=rows)

    assert 0 == result.exit_code, result.stderr
    assert 30 == len((folder / "out.jsonl").read_text().splitlines())
    assert 30 == len(records(folder / "stdin.batch.jsonl"))
    # And the same command goes on with the same rows.
    assert "30 of 30 rows were answered before" in told(openjev("batch", "-", input=rows))
    assert "stdin.jsonl line 1" in told(openjev("batch", "-", input="no JSON"))


@pytest.mark.parametrize("column", ["urgent.noul", "urgent.x_order_spread", "urgent.x_accept", "error"])
def test_a_column_that_would_be_there_twice_is_told_before_a_row_is_answered(openjev, toy, folder, column):
    row = {"state": "Now!", "questions": QUESTIONS, column: "mine"}
    (folder / "data.jsonl").write_text(json.dumps(row) + "\n")

    result = openjev("batch", "data.jsonl", "--out", "out.csv")

    assert 2 == result.exit_code
    assert f"the export would have the column {column!r} twice; rename the data's column" in told(result)
    assert not (folder / "data.batch.jsonl").exists()


@pytest.mark.parametrize("flag", ["--out", "--html", "--json"])
def test_a_folder_that_is_not_there_is_told_before_a_row_is_answered(openjev, toy, folder, flag):
    result = openjev("eval", "data.jsonl", flag, "reports/file.csv")

    assert 2 == result.exit_code
    assert f"{flag} reports/file.csv: cannot be written: there is no folder reports; make it first" in told(result)
