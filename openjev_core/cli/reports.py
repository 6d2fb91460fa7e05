"""Reports for the user: as tables on a terminal, as JSON, as an HTML page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from openjev_core.cli.terminal import console, shown
from openjev_core.datasets.page import TITLES, interval, number, page
from openjev_core.datasets.places import write_text

MISTAKES = 5
"""Mistakes that a terminal shows; the page and the JSON have more."""

STATE = 60
"""Characters of a cell among them."""


def show(
    report: Mapping[str, Any],
    print_tables: Callable[[Mapping[str, Any]], None],
    template: str,
    json_file: Path | None,
    html: Path | None,
) -> None:
    """Print a report's tables, or its JSON in their place for ``-``, and write the files asked for.

    Args:
        report: The report.
        print_tables: Prints its tables.
        template: The name of its page.
        json_file: Where its JSON goes; ``-`` for standard output.
        html: Where its page goes.
    """
    if json_file is not None and str(json_file) == "-":
        typer.echo(json.dumps(report, indent=2))
    else:
        print_tables(report)
        if json_file is not None:
            write_text(json_file, json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    if html is not None:
        write_text(html, page(template, report))


def print_evaluation(report: Mapping[str, Any]) -> None:
    """Print the report of a run: the verdict first."""
    out = console()
    rows, questions = report["rows"], report["questions"]
    _print_verdicts(report["verdict"])
    out.print(
        Text(
            f"{rows['answered']} of {rows['in_data']} rows answered by {shown(str(report['run']['model']))}; "
            f"{questions['labelled']} of {questions['asked']} questions are labelled. Intervals: 95%."
        )
    )
    if report["promise"]:
        _print_promise(report["promise"])
    for group in report["groups"]:
        _heading(f"{group['by']} {group['name']}: {group['count']} questions" + (" (few)" if group["few"] else ""))
        for one in group.get("confusion", {}).get("pairs", ())[:3]:
            out.print(Text(shown(f"{one['count']} times {one['answered']} in place of {one['label']}")))
        out.print(_measures(group))
    if report["mistakes"]:
        _print_mistakes(report["mistakes"])
    if report["flips"]:
        _heading("answers that change with the order of the options")
        table = _table("options", "order", "questions", "changed")
        for one in report["flips"]:
            table.add_row(one["options"], one["order"], str(one["count"]), interval(one["rate"]))
        out.print(table)
    if report["calibrated"]:
        parts = report["calibrated"]
        out.print(
            f"\nCalibration: {parts['question']} answers by what was fitted on their question, {parts['type']} by what "
            f"was fitted on their type, {parts['none']} by none."
        )
    if report["label_mass"]:
        mass = report["label_mass"]
        out.print(
            f"\nThe labels held {mass['mean']:.1%} of the model's probability; 5% of answers below {mass['p5']:.1%}."
        )
    if report["cost"]:
        cost = report["cost"]
        _heading("cost of a row")
        table = _table("seconds, median", "90th percentile", "input tokens")
        table.add_row(
            number(cost["seconds"]["p50"]), number(cost["seconds"]["p90"]), f"{cost['input_tokens_per_row']:.0f}"
        )
        out.print(table)


def _measures(group: Mapping[str, Any]) -> Table:
    table = _table("measure", "value")
    for name, estimate in group["measures"].items():
        table.add_row(TITLES[name], _estimate(estimate))
    if "calibration" in group:
        found = group["calibration"]
        table.add_row(
            "the same by chance alone", f"{number(found['by_chance'])}; test of calibration: p = {number(found['p'])}"
        )
    for one in group.get("thresholds", ()):
        table.add_row(f"to be {one['share']:.4g} right", one["words"])
    return table


def _print_promise(promise: Mapping[str, Any]) -> None:
    _heading(
        f"accepted answers: {promise['share']:.4g} right was promised, with {promise['confidence']:.4g} confidence"
    )
    table = _table("question", "answers", "accepted", "right of these", "on these rows")
    said = {"yes": "kept", "no": "broken", "unclear": "kept as far as so few tell"}
    for one in promise["questions"]:
        accepted, right = str(one["accepted"]), _estimate(one["right"])
        table.add_row(shown(one["name"]), str(one["answers"]), accepted, right, said[one["held"]])
    console().print(table)


def _print_mistakes(mistakes: Sequence[Mapping[str, Any]]) -> None:
    _heading("surest mistakes")
    table = _table("row", "question", "label", "answered", "probability", "state")
    for one in mistakes[:MISTAKES]:
        words = (one["id"], one["question"], one["label"], one["answered"], number(one["probability"]), one["state"])
        table.add_row(*(Text(shown(word if len(word) <= STATE else word[: STATE - 1] + "…")) for word in words))
    console().print(table)


def print_comparison(report: Mapping[str, Any]) -> None:
    """Print the comparison of two runs: the verdict first."""
    questions = report["questions"]
    _print_verdicts(report["verdict"])
    console().print(
        Text(
            f"{questions['compared']} labelled questions in both, rows matched by {report['matched_by']}; "
            f"{questions['only_before']} only in the first and {questions['only_after']} only in the second are left "
            "out. Intervals: 95%."
        )
    )
    if questions["other_labels"]:
        console().print(f"{questions['other_labels']} of those compared have another label in the second run.")
    if questions["other_states"]:
        console().print(f"{questions['other_states']} rows of the same id have another state in the second run.")
    for group in report["groups"]:
        _heading(f"{group['by']} {group['name']}: {group['count']} questions")
        _print_before_after(group["measures"])
        right = group["right"]
        console().print(
            f"right only before: {right['only_before']}, only after: {right['only_after']}, p = {number(right['p'])}"
        )


def _print_verdicts(verdicts: Sequence[Mapping[str, Any]]) -> None:
    for one in verdicts:
        name = f"{one['name']}: " if len(verdicts) > 1 else ""
        console().print(Text(shown(f"{name}{one['words']}"), style="bold"))


def _estimate(estimate: Mapping[str, Any]) -> str:
    """A value with its interval, or with the reason why it has none."""
    reason = f" ({estimate['reason']})" if estimate["reason"] and estimate["value"] is not None else ""
    return f"{interval(estimate)}{reason}"


def print_calibration(report: Mapping[str, Any]) -> None:
    """Print what a calibration does."""
    for group in report["groups"]:
        name = f"{group['type']} {group['question']!r}" if group["question"] else f"{group['type']}, other questions"
        _heading(f"{name}: {group['count']} labelled readouts of {group['rows']} rows")
        biases = "".join(f", {option[:STATE]} {value:+.2f}" for option, value in group["bias"].items())
        kept = f"{group['form']}; temperature {number(group['temperature'])}{shown(biases)}: {group['why']}"
        console().print(Text(kept))
        _print_before_after(group["measures"])
    if report["promise"]:
        _print_acceptance(report["promise"])


def _print_acceptance(promise: Mapping[str, Any]) -> None:
    _heading(f"accepted: {promise['share']:.4g} of the answers right, with {promise['confidence']:.4g} confidence")
    table = _table("question", "accepted are answers of")
    for one in promise["questions"].values():
        table.add_row(Text(shown(f"{one['type']} {one['text']!r}")), one["words"])
    console().print(table)


def _print_before_after(measures: Mapping[str, Any]) -> None:
    table = _table("measure", "before", "after", "difference")
    for name, one in measures.items():
        table.add_row(TITLES[name], interval(one["before"]), interval(one["after"]), interval(one["difference"]))
    console().print(table)


def _heading(text: str) -> None:
    console().print(Text(f"\n{shown(text)}", style="bold"))


def _table(*columns: str) -> Table:
    return Table(*columns, box=None, pad_edge=False)
