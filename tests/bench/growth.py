"""Growth: time and memory against questions, options, length of the state and evaluations at once.

    uv run python tests/bench/growth.py --model DIR [--quick]

DIR holds a tokenizer and chat template. One `openjev serve` on a zero-latency SGLang double, and one with the embedded
engine and its demo model, on all cores; every request has a state of its own. For each point: CPU milliseconds of the
server a request, milliseconds on the clock a request, and the server's resident memory afterwards. Rounds are
interleaved; medians with the rounds' range. Before all that, memory is read before and after 64 questions over a state
of 3,500 tokens, as a server meets them the first time.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
from contextlib import ExitStack
from pathlib import Path

import matplotlib as mpl
import orjson
from bench_client import drive
from bench_processes import double, openjev
from bench_requests import bodies, body, state

mpl.use("agg")
from matplotlib import pyplot as plt

RESULTS = Path(__file__).with_name("results")
RAISED = (
    "--max-total-input-tokens", 10_000_000, "--max-input-tokens", 32_768, "--max-answers", 255,
    "--max-concurrent-requests", 64,
)  # fmt: skip
SERIES = {
    "questions": (1, 2, 4, 8, 16, 32, 64),
    "options": (2, 4, 16, 64, 128, 255),
    "state tokens": (100, 1_000, 4_000, 8_000, 16_000, 31_000),
    "evaluations at once": (1, 2, 4, 8, 16),
}
EMBEDDED = {"state tokens, embedded engine": (100, 1_000, 2_000, 4_000, 7_000)}
"""One request a round: a state of 7,000 tokens takes the better part of a minute on two cores."""
EMBEDDED_ROUNDS = 3
PLAIN_STATE = 600
MB = 1_000_000


def requests_for(series, value, count, seed):
    """Bodies and the number of clients of a point."""
    if series == "questions":
        return bodies(count, tokens=PLAIN_STATE, asked=value, seed=seed), 1
    if series == "options":
        chance = random.Random(seed)
        return [choice(state(PLAIN_STATE, chance), value) for _ in range(count)], 1
    if series.startswith("state tokens"):
        return bodies(count, tokens=value, asked=3, seed=seed), 1
    return bodies(count * value, tokens=PLAIN_STATE, asked=3, seed=seed), value


def choice(text, options):
    """A request with one question of so many options."""
    criteria = {f"team {index}": f"Matters of kind {index}" for index in range(options)}
    question = {"type": "choice", "instructions": "Which team should handle this?", "criteria": criteria}
    return orjson.dumps({"model": "jev-latest", "state": text, "questions": {"team": question}})


def measured(server, sent, clients):
    before = server.cpu_seconds()
    load = asyncio.run(drive(server.url, sent, clients))
    return {
        "cpu_ms": (server.cpu_seconds() - before) / len(sent) * 1000,
        "clock_ms": load.seconds / len(sent) * 1000,
        "resident_mb": server.resident_bytes() / MB,
    }


def round_of(series_of_values, found, server, count, turn):
    """One more figure for each point of these series."""
    for series, values in series_of_values.items():
        for value in values:
            sent, clients = requests_for(series, value, count, f"{series}-{value}-{turn}")
            found[series][value].append(measured(server, sent, clients))


def memory_of_64_questions(server):
    """Megabytes that resident memory rises by, over several states."""
    asyncio.run(drive(server.url, bodies(20, tokens=PLAIN_STATE, asked=3, seed="warm"), 1))
    before = server.resident_bytes()
    chance = random.Random("memory")
    rises = []
    for _ in range(5):
        asyncio.run(drive(server.url, [body(state(3_500, chance), 64)], 1))
        rises.append((server.resident_bytes() - before) / MB)
    return rises


def median_of(points, figure):
    return statistics.median(point[figure] for point in points)


def spread(points, figure):
    values = [point[figure] for point in points]
    return f"{statistics.median(values):.2f} [{min(values):.2f}–{max(values):.2f}]"


def table(found, rises):
    where = "On the double, but for the last table; see ../growth.py."
    lines = ["# Growth", "", f"{where} Median [range of the rounds]; a request.", ""]
    lines.append(
        "64 questions over a state of 3,500 tokens, five states one after another: resident memory rose by "
        f"{', '.join(f'{rise:.1f}' for rise in rises)} MB in all."
    )
    for series, points in found.items():
        lines += ["", f"| {series} | CPU ms | ms on the clock | resident MB |", "| --- | --- | --- | --- |"]
        for value, rounds in points.items():
            cells = (spread(rounds, figure) for figure in ("cpu_ms", "clock_ms", "resident_mb"))
            lines.append(f"| {value:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def plot(found):
    figure, axes = plt.subplots(2, 3, figsize=(13, 6), layout="constrained")
    axes.flat[-1].set_axis_off()
    for axis, (series, points) in zip(axes.flat, found.items(), strict=False):  # one is left over
        values = list(points)
        for name, label in (("cpu_ms", "CPU"), ("clock_ms", "clock")):
            axis.plot(values, [median_of(points[value], name) for value in values], "o-", label=label)
        axis.set(xlabel=series, ylabel="ms a request", xlim=(0, None), ylim=(0, None))
        memory = axis.twinx()
        memory.plot(values, [median_of(points[value], "resident_mb") for value in values], "k:", label="resident")
        memory.set(ylabel="resident MB", ylim=(0, None))
        axis.legend(loc="upper left")
        memory.legend(loc="lower right")
    figure.savefig(RESULTS / "growth.png", dpi=90)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--quick", action="store_true", help="two rounds of few requests")
    options = parser.parse_args()
    rounds, count = (2, 5) if options.quick else (5, 20)
    found = {series: {value: [] for value in values} for series, values in {**SERIES, **EMBEDDED}.items()}
    with ExitStack() as stack:
        peer = stack.enter_context(double("--vocab-size", 260_000, "--model-path", options.model))
        server = stack.enter_context(openjev("--connect", peer.url, "--model", options.model, *RAISED))
        rises = memory_of_64_questions(server)
        print(f"64 questions over a state of 3,500 tokens: resident memory +{rises[0]:.1f} MB, all of them {rises}")
        for turn in range(rounds):
            round_of(SERIES, found, server, count, turn)
            print(f"round {turn + 1} of {rounds}", flush=True)
    with openjev(core=None) as server:
        for turn in range(1 if options.quick else EMBEDDED_ROUNDS):
            round_of(EMBEDDED, found, server, 1, turn)
            print(f"embedded engine: round {turn + 1}", flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "growth.md").write_text(table(found, rises), "utf-8")
    (RESULTS / "growth.json").write_bytes(
        orjson.dumps({"rises_mb": rises, "series": found}, option=orjson.OPT_NON_STR_KEYS)
    )
    plot(found)
    print(table(found, rises))


if __name__ == "__main__":
    main()
