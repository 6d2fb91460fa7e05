"""The file of a run: nothing lost, nothing written twice, whatever happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from openjev_core import RequestError, StartupError
from openjev_core.datasets.records import identity
from openjev_core.datasets.rows import Row
from openjev_core.datasets.runs import open_run, read_run

HEADER = {"command": "eval", "orders": 1}


def row(number, state="A state."):
    return Row(
        number=number, place=f"d.jsonl line {number}", id=str(number), state=state, questions={}, labels={}, fields={}
    )


ROWS = [row(1), row(2), row(3)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "run.jsonl"


def begun(path, *numbers):
    with open_run(path, HEADER, ROWS) as run:
        for number in numbers:
            run.add({**identity(ROWS[number - 1]), "model": "m"})


def test_a_run_is_taken_up_where_it_ended(path):
    begun(path, 2)

    with open_run(path, HEADER, ROWS) as run:
        assert [2] == list(run.done)
        run.add({**identity(ROWS[0]), "model": "m"})

    header, records = read_run(path)
    assert {"openjev_run": 1, **HEADER} == header
    assert [2, 1] == [record["row"] for record in records]


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_torn_last_line_is_cut_off_and_its_row_answered_again(path, cut):
    begun(path, 1, 2)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])

    with open_run(path, HEADER, ROWS) as run:
        assert [1] == list(run.done)
        run.add({**identity(ROWS[1]), "model": "m"})

    assert whole == path.read_bytes()


def test_a_torn_first_line_begins_anew(path):
    begun(path)
    path.write_bytes(path.read_bytes()[:-3])

    begun(path, 1)

    assert [1] == [record["row"] for record in read_run(path)[1]]


def test_a_row_is_not_written_twice(path):
    with pytest.raises(StartupError, match="row 1 was answered twice"):
        begun(path, 1, 1)

    assert 1 == len(read_run(path)[1])


def test_a_killed_process_loses_no_line_that_it_wrote(path):
    script = (
        "import os, signal, sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from test_runs import HEADER, ROWS, identity, open_run\n"
        "with open_run(Path(sys.argv[1]), HEADER, ROWS) as run:\n"
        "    run.add({**identity(ROWS[0]), 'model': 'm'})\n"
        "    run.add({**identity(ROWS[1]), 'model': 'm'})\n"
        '    os.write(run._descriptor, b\'{"row": 3, "di\')\n'
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, path, Path(__file__).parent], check=False)
    assert -9 == killed.returncode

    with open_run(path, HEADER, ROWS) as run:
        assert [1, 2] == list(run.done)


def test_two_processes_do_not_share_a_run(path):
    path.parent.mkdir()
    with FileLock(f"{path}.lock"), pytest.raises(StartupError, match="another process is writing this run"):
        begun(path)


def test_a_run_that_was_begun_differently_is_refused(path):
    begun(path, 1, 2)
    torn = path.read_bytes()[:-5]
    path.write_bytes(torn)

    refusal = pytest.raises(StartupError, match='begun with orders 1, and now it is "full"')
    with refusal, open_run(path, {**HEADER, "orders": "full"}, ROWS):
        pass
    assert torn == path.read_bytes()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([row(1, "Another.")], "run.jsonl line 2: answers row 1 of other data (d.jsonl line 1: its state"),
        ([row(2)], "run.jsonl line 2: answers row 1 of other data (there is no such row"),
    ],
)
def test_answers_to_other_rows_are_refused(path, rows, words):
    begun(path, 1)

    with pytest.raises(RequestError) as refused, open_run(path, HEADER, rows):
        pass
    assert words in str(refused.value)


def test_rows_may_be_added_to_the_data(path):
    begun(path, 1)

    with open_run(path, HEADER, [*ROWS, row(4)]) as run:
        assert [1] == list(run.done)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"openjev_run": 2}\n', "line 1: this is no run of this program"),
        ('{"state": "x"}\n', "line 1: this is no run of this program"),
        ("[]\n", "line 1: this is no run of this program"),
        ('{"openjev_run": 1}\nnope\n', "line 2: the line is not JSON"),
        ('{"openjev_run": 1}\n{"row": 1}\n', "line 2: this is no record of a row"),
        ('{"openjev_run": 1}\n{"id": "1", "digest": ""}\n', "line 2: this is no record of a row"),
        ('{"state": "x"}', "run.jsonl: this is no run of this program; use another file"),
        ("x", "this is no run of this program; use another file"),
        ("one\ntwo", "line 1: the line is not JSON"),
    ],
)
def test_another_file_is_not_written_to(path, content, words):
    path.parent.mkdir()
    path.write_text(content)

    with pytest.raises(RequestError, match=words):
        begun(path, 1)
    assert content == path.read_text()


def test_a_duplicate_in_the_file_is_told(path):
    begun(path, 1)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, lines[-1]]))

    with pytest.raises(RequestError, match=r"run\.jsonl line 3: answers row 1 a second time"):
        begun(path)


def test_a_full_disk_is_told(path, monkeypatch):
    def full(descriptor, line):
        raise OSError(28, "No space left on device")

    with open_run(path, HEADER, ROWS) as run:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(StartupError, match="cannot be written: No space left on device"):
            run.add({**identity(ROWS[0]), "model": "m"})
        assert {} == run.done


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(StartupError, match="cannot be written"):
        begun(tmp_path / "file" / "run.jsonl")


def test_records_are_plain_json(path):
    begun(path, 1)

    assert ["openjev_run", "command", "orders"] == list(json.loads(path.read_text().splitlines()[0]))
