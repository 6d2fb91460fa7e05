"""``openjev calibrate``: a file that a server takes, and a report on rows that the fit has not seen."""

from __future__ import annotations

import json

import pytest

from openjev_core.cli.calibrate import worse_lines


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    question = {"type": "choice", "criteria": {"a": "First", "b": "Second", "c": "Third"}}
    rows = [
        {"state": f"State {number}.", "questions": {"q": question}, "labels": {"q": "abc"[number % 3]}}
        for number in range(60)
    ]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "data.jsonl"


def told(result):
    return " ".join(result.stderr.split())


@pytest.mark.usefixtures("toy")
def test_what_is_fitted_can_be_applied(openjev, data, tmp_path):
    result = openjev("calibrate", data, "--out", "c.json", "--html", "c.html", "--json", "report.json")

    assert 0 == result.exit_code, result.stderr
    calibration = json.loads((tmp_path / "c.json").read_text())
    assert ("toy/Toy-1", 1, "off", ["choice"]) == (
        calibration["model"],
        calibration["orders"],
        calibration["prior"],
        list(calibration["types"]),
    )
    (group,) = json.loads((tmp_path / "report.json").read_text())["groups"]
    assert ["accuracy", "log_loss", "brier", "ece", "adaptive_ece"] == list(group["measures"])
    assert "<svg" in (tmp_path / "c.html").read_text()
    assert "60 labelled readouts of 60 rows" in result.stdout

    plain = openjev("eval", data, "--run", "plain.jsonl", "--no-reorder", "--json", "-")
    corrected = openjev(
        "eval", data, "--run", "corrected.jsonl", "--no-reorder", "--json", "-", "--calibration", "c.json"
    )
    losses = [json.loads(run.stdout)["groups"][0]["measures"]["log_loss"]["value"] for run in (plain, corrected)]
    # The toy's answers are noise, and a fit to noise takes its certainty away.
    assert losses[1] < losses[0]


@pytest.mark.parametrize(
    ("form", "after", "told"), [("temperature", 0.75, True), ("temperature", 0.7, False), ("none", 0.75, False)]
)
def test_a_correction_that_makes_unseen_rows_worse_is_told(form, after, told):
    loss = {"before": {"value": 0.71}, "after": {"value": after}}
    group = {"type": "noul", "options": None, "form": form, "measures": {"log_loss": loss}}

    lines = worse_lines({"groups": [group]})

    assert told == bool(lines)
    assert not told or "their log loss went from 0.710 to 0.750" in lines[0]


@pytest.mark.usefixtures("toy")
def test_it_holds_for_the_orders_that_it_was_fitted_with(openjev, data):
    openjev("calibrate", data, "--out", "c.json", "--orders", "full")

    refused = openjev("eval", data, "--calibration", "c.json")
    taken = openjev("eval", data, "--calibration", "c.json", "--orders", "full")

    assert 1 == refused.exit_code
    assert "fitted for OPENJEV_ORDERS 'full', found '1'" in told(refused)
    assert 0 == taken.exit_code, taken.stderr


@pytest.mark.usefixtures("toy")
def test_answers_of_one_calibration_do_not_pass_for_those_of_the_next(openjev, data, tmp_path):
    openjev("calibrate", data, "--out", "c.json")
    openjev("eval", data, "--calibration", "c.json")
    changed = json.loads((tmp_path / "c.json").read_text())
    next(iter(changed["questions"].values()))["temperature"] *= 2
    (tmp_path / "again.json").write_text(json.dumps(json.loads((tmp_path / "c.json").read_text())))
    (tmp_path / "c.json").write_text(json.dumps(changed))

    same = openjev("eval", data, "--calibration", "again.json")
    other = openjev("eval", data, "--calibration", "c.json")

    assert 0 == same.exit_code, same.stderr
    assert 1 == other.exit_code
    assert "data.eval.jsonl: this run was begun with calibration" in told(other)


@pytest.mark.usefixtures("toy")
def test_a_calibration_in_force_does_not_matter_to_a_new_one(openjev, data, monkeypatch):
    monkeypatch.setenv("OPENJEV_CALIBRATION", "missing.json")

    result = openjev("calibrate", data)

    assert 0 == result.exit_code, result.stderr
    assert "OPENJEV_CALIBRATION and OPENJEV_TEMPERATURE are left aside" in told(result)


def test_a_server_does_not_tell_what_is_needed(openjev, data):
    result = openjev("calibrate", data, "--url", "http://127.0.0.1:1")

    assert 2 == result.exit_code
    assert "--url: calibrate needs the scores behind the answers" in told(result)


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), "20 labelled choice readouts in 20 rows are too few"),
        (("--only", "noul"), "--only: no question of type 'noul' has a label"),
    ],
)
def test_too_few_labels_are_refused_before_a_row_is_read(openjev, data, flags, words):
    data.write_text("".join(data.read_text().splitlines(keepends=True)[:20]))

    result = openjev("calibrate", data, *flags)

    assert 2 == result.exit_code
    assert words in told(result)
    assert [data] == list(data.parent.iterdir())


@pytest.mark.usefixtures("toy")
def test_a_file_that_cannot_be_written_is_told(openjev, data):
    result = openjev("calibrate", data, "--out", "missing/c.json")

    assert 2 == result.exit_code
    assert "--out missing/c.json: cannot be written: there is no folder missing" in told(result)
    assert [data] == list(data.parent.iterdir())


@pytest.mark.usefixtures("toy")
def test_its_run_is_not_one_of_eval(openjev, data):
    openjev("eval", data, "--run", "run.jsonl")

    result = openjev("calibrate", data, "--run", "run.jsonl")

    assert 1 == result.exit_code
    assert 'begun with command "eval", and now it is "calibrate"' in told(result)
