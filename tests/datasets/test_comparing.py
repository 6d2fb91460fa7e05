"""Two runs side by side: numbers that can be worked out by hand."""

from __future__ import annotations

import json

import pytest

from openjev_core.datasets.comparing import compare_runs


def run(path, right, names=lambda _: ["a", "b"]):
    """A run of one question per row, right where ``right`` says so."""
    lines = [{"openjev_run": 1, "command": "eval"}]
    for row, is_right in enumerate(right, start=1):
        question = {
            "type": "choice",
            "kind": "nominal",
            "names": names(row),
            "positive": None,
            "label": 0,
            "predicted": 0 if is_right else 1,
            "probabilities": [0.75, 0.25] if is_right else [0.25, 0.75],
        }
        lines.append(
            {"row": row, "id": str(row), "digest": f"d{row}", "state": f"s{row}", "questions": {"q": question}}
        )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_what_only_one_of_two_runs_got_right_is_tested_in_both_directions(tmp_path):
    before = run(tmp_path / "before.jsonl", [True] * 6 + [False] + [True] * 3)
    after = run(tmp_path / "after.jsonl", [False] * 6 + [True] + [True] * 3)

    (group,) = compare_runs(before, after)["groups"]
    (other,) = compare_runs(after, before)["groups"]

    # Of 7 fair coins, 6 or more agree in 2 * (1 + 7) of 128 cases.
    assert {"only_before": 6, "only_after": 1, "p": pytest.approx(0.125)} == group["right"]
    assert {"only_before": 1, "only_after": 6, "p": pytest.approx(0.125)} == other["right"]
    accuracy = group["measures"]["accuracy"]
    assert pytest.approx([0.9, 0.4, -0.5]) == [accuracy[name]["value"] for name in ("before", "after", "difference")]


def test_an_f1_needs_questions_of_the_same_options(tmp_path):
    one = [run(tmp_path / f"{name}.jsonl", [True, False, True]) for name in ("a", "b")]
    many = [run(tmp_path / f"{name}.jsonl", [True, False], lambda row: [f"a{row}", "b"]) for name in ("c", "d")]

    assert "macro_f1" in compare_runs(*one)["groups"][0]["measures"]
    assert "macro_f1" not in compare_runs(*many)["groups"][0]["measures"]
