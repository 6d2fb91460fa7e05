"""Reports for the user: as tables on a terminal, as JSON, as an HTML page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from openjev_core.cli.terminal import console, shown
from openjev_core.datasets.page import TITLES, interval, number, page
from openjev_core.datasets.places import write_text


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
    """Print the report of a run."""
    out = console()
    rows, questions = report["rows"], report["questions"]
    out.print(
        Text(
            f"{rows['answered']} of {rows['in_data']} rows answered by {shown(str(report['run']['model']))}; "
            f"{questions['labelled']} of {questions['asked']} questions are labelled. Intervals: 95%."
        )
    )
    for group in report["groups"]:
        _heading(f"{group['by']} {group['name']}: {group['count']} questions" + (" (few)" if group["few"] else ""))
        table = _table("measure", "value")
        for name, estimate in group["measures"].items():
            table.add_row(TITLES[name], interval(estimate))
        for one in group.get("thresholds", ()):
            suggestion = (
                "no threshold reaches it"
                if one["threshold"] is None
                else f"top probability {number(one['threshold'])} or more, which keeps {one['coverage']:.0%}"
            )
            table.add_row(f"accuracy {one['target']:g}", suggestion)
        out.print(table)
    if report["flips"]:
        _heading("answers that change with the order of the options")
        table = _table("options", "order", "questions", "changed")
        for one in report["flips"]:
            table.add_row(one["options"], one["order"], str(one["count"]), interval(one["rate"]))
        out.print(table)
    if report["cost"]:
        cost = report["cost"]
        _heading("cost of a row")
        table = _table("seconds, median", "90th percentile", "input tokens")
        table.add_row(
            number(cost["seconds"]["p50"]), number(cost["seconds"]["p90"]), f"{cost['input_tokens_per_row']:.0f}"
        )
        out.print(table)


def print_comparison(report: Mapping[str, Any]) -> None:
    """Print the comparison of two runs."""
    questions = report["questions"]
    console().print(
        Text(
            f"{questions['compared']} labelled questions in both; {questions['only_before']} only in the first and "
            f"{questions['only_after']} only in the second are left out. Intervals: 95%."
        )
    )
    for group in report["groups"]:
        _heading(f"{group['by']} {group['name']}: {group['count']} questions")
        _print_before_after(group["measures"])
        right = group["mcnemar"]
        console().print(
            f"right only before: {right['only_before_right']}, only after: {right['only_after_right']}, "
            f"p = {number(right['p'])}"
        )


def print_calibration(report: Mapping[str, Any]) -> None:
    """Print what a calibration does."""
    for group in report["groups"]:
        size = f" with {group['options']} options" if group["options"] else ""
        _heading(f"{group['type']}{size}: {group['count']} labelled readouts")
        biases = "".join(f", {label} {value:+.2f}" for label, value in group["bias"].items())
        console().print(Text(f"{group['form']}; temperature {number(group['temperature'])}{shown(biases)}"))
        _print_before_after(group["measures"])


def _print_before_after(measures: Mapping[str, Any]) -> None:
    table = _table("measure", "before", "after", "difference")
    for name, one in measures.items():
        table.add_row(TITLES[name], interval(one["before"]), interval(one["after"]), interval(one["difference"]))
    console().print(table)


def _heading(text: str) -> None:
    console().print(Text(f"\n{shown(text)}", style="bold"))


def _table(*columns: str) -> Table:
    return Table(*columns, box=None, pad_edge=False)
