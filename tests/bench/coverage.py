"""How often the intervals of a report hold the truth: `uv run python tests/bench/coverage.py [--runs 1000]`.

A model answers yes/no questions about rows of a known population, whose values are worked out once from a million
questions. Questions of a row share a part of their difficulty and of the model's mistakes, so that they go together.
For every number of rows and of questions a row, many data sets are drawn, and each measure is estimated by the code
that reports use. Of the intervals that are given, how many hold the population's value? Nominal is 95%; the last lines
name those that are more than two points below it by more than the noise of the simulation itself.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from openjev_core.datasets.items import Items
from openjev_core.datasets.measures import MEASURES, Measure

RESULTS = Path(__file__).parent / "results"
ROWS = (5, 10, 20, 50, 200, 1000)
QUESTIONS = (1, 3, 10)
POPULATION = 1_000_000
NOMINAL, WITHIN = 0.95, 0.02
MODELS = {"good": (6.0, 0.15), "middling": (1.5, 0.7)}
"""How far apart the states of yes and of no are, and how large the model's mistakes are."""

SHOWN = ("accuracy", "macro_f1", "auroc", "log_loss", "brier", "ece", "adaptive_ece")


def drawn(chance: np.random.Generator, rows: int, each: int, model: str) -> tuple[Items, Items]:
    """The same questions answered by two models, of which the second is a little better."""
    apart, widest = MODELS[model]
    row = np.repeat(np.arange(rows), each)
    truth = np.repeat(chance.normal(0, 1, rows), each) + chance.normal(0, 1, rows * each) - 0.7
    label = chance.random(rows * each) < expit(apart * truth)
    answers = []
    for noise in (widest, 0.7 * widest):
        mistake = np.repeat(chance.normal(0, noise, rows), each) + chance.normal(0, noise, rows * each)
        answers.append(items(row, label, expit(1.3 * apart * (truth + mistake))))
    return answers[0], answers[1]


def items(row: Any, label: Any, yes: Any) -> Items:
    """Judged yes/no questions."""
    right = np.where(label, yes, 1 - yes)
    return Items(
        rows=row,
        names=("Yes", "No"),
        kinds=("binary",),
        labels=np.where(label, 0, 1),
        predictions=np.where(yes >= 0.5, 0, 1),
        correct=(yes >= 0.5) == label,
        confidence=np.maximum(yes, 1 - yes),
        log_loss=-np.log(np.maximum(right, 1e-12)),
        brier=2 * (1 - right) ** 2,
        ranked=np.full(len(row), np.nan),
        error=np.full(len(row), np.nan),
        positive=yes,
        is_positive=label,
    )


def simulated(
    measure: Measure, model: str, size: tuple[int, int], runs: int, truth: tuple[float, float]
) -> Iterator[Any]:
    """The two cells of a measure: its own interval, and that of the difference between the two models."""
    (rows, each), given, held = size, [0, 0], [0, 0]
    chance = np.random.default_rng([rows, each, len(model)])
    for _ in range(runs):
        first, second = drawn(chance, rows, each, model)
        for place, found in enumerate((measure.estimate(first), measure.difference(first, second))):
            if found.low is not None:
                given[place] += 1
                held[place] += found.low <= truth[place] <= found.high
    for place, what in enumerate(("value", "difference")):
        yield {
            "measure": measure.name, "of": what, "model": model, "rows": rows, "questions": each,
            "given": given[place] / runs, "coverage": held[place] / given[place] if given[place] else None,
            "noise": 2 * math.sqrt(NOMINAL * (1 - NOMINAL) / given[place]) if given[place] else None,
        }  # fmt: skip


def main() -> None:
    """Print one line per cell, and write them all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rows", type=int, nargs="*", default=list(ROWS))
    arguments = parser.parse_args()
    cells = []
    with threadpool_limits(limits=1):
        for model in MODELS:
            first, second = drawn(np.random.default_rng(0), POPULATION, 1, model)
            print(f"{model} model: accuracy {first.correct.mean():.3f}, and {second.correct.mean():.3f} of the other")
            for measure in (one for one in MEASURES if one.name in SHOWN):
                values = measure.of(first), measure.of(second)
                for size in product(arguments.rows, QUESTIONS):
                    truth = (values[0], values[1] - values[0])
                    cells.extend(simulated(measure, model, size, arguments.runs, truth))
                    show(cells[-2:])
    outside = [
        one for one in cells if one["coverage"] is not None and one["coverage"] + one["noise"] < NOMINAL - WITHIN
    ]
    print(f"{sum(one['coverage'] is not None for one in cells)} kinds of intervals, {len(outside)} of them below 93%")
    show(outside)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "coverage.md").write_text(table(cells, arguments.runs))


def table(cells: list[dict[str, Any]], runs: int) -> str:
    """The cells in Markdown, a column for each number of questions a row."""
    lines = [
        f"The share of intervals that hold the truth, of {runs} data sets each; in brackets the share of those",
        "that get one, where not all do. Written by `tests/bench/coverage.py`.",
        "",
        "| measure | of | model | rows | " + " | ".join(f"{each} a row" for each in QUESTIONS) + " |",
        "| --- " * (4 + len(QUESTIONS)) + "|",
    ]
    found: dict[tuple[Any, ...], list[str]] = {}
    for one in cells:
        held = "none" if one["coverage"] is None else f"{one['coverage']:.3f}"
        given = "" if one["given"] in {0, 1} else f" ({one['given']:.0%})"
        found.setdefault((one["measure"], one["of"], one["model"], one["rows"]), []).append(held + given)
    lines += ["| " + " | ".join([*map(str, key), *values]) + " |" for key, values in found.items()]
    return "\n".join(lines) + "\n"


def show(cells: list[dict[str, Any]]) -> None:
    """One line per cell."""
    for one in cells:
        found = "no interval" if one["coverage"] is None else f"{one['coverage']:.3f} of those given"
        print(
            f"{one['measure']:12} {one['of']:10} {one['model']:9} rows {one['rows']:5} x {one['questions']:2}: "
            f"{found}, in {one['given']:.0%} of runs",
            flush=True,
        )


if __name__ == "__main__":
    main()
