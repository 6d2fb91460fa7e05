"""Measure how far answers can be trusted, and what trusting them more costs:

    uv run python tests/bench/trust.py flips        # answers that change with the order of the options, 1 order and all
    uv run python tests/bench/trust.py calibration  # calibration error before and after, on held-out rows
    uv run python tests/bench/trust.py prior        # with and without the label prior divided out
    uv run python tests/bench/trust.py labels       # yes/no questions under Yes and No, and under A and B
    uv run python tests/bench/trust.py coherence    # jevbench's coherence suite, with one order and with all
    uv run python tests/bench/trust.py rotations    # rotations of the order given, against those of a canonical one
    uv run python tests/bench/trust.py cost         # all orders of a 4-option question over a 600-token state

On the embedded engine; after ``--``, any settings of `openjev` name another, such as
``-- --connect http://127.0.0.1:30000 --model DIRECTORY``. Runs are kept in results/runs, and a measurement that was
stopped goes on from there; a summary goes to results/.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from make_cases import write_cases
from sklearn.metrics import roc_auc_score

from openjev_core import Settings, open_engine
from openjev_core.settings import load_settings

HERE = Path(__file__).parent
RESULTS = HERE / "results"
RUNS = RESULTS / "runs"
CASES = RUNS / "cases"

WORDS = "The parcel left the depot on Monday and was seen in a van on Tuesday, says the third note in the file. "
QUESTION = {
    "type": "choice",
    "instructions": "Which team should this message go to?",
    "criteria": {
        "billing": "Payments, invoices and receipts",
        "technical": "Products that do not work as they should",
        "delivery": "Parcels that are late, lost or damaged on the way",
        "account": "Signing in, profiles and personal data",
    },
}
PAIRS = 15
MAIN = "from openjev_core.cli import main; main()"
SUITES = {"examples": (), "jevbench-mini": ("--groups", "REP.equivariance")}
"""The first takes minutes, the second an hour on a CPU; each is asked for by its name."""
ROTATED = ("team",)


def openjev(*arguments: object) -> dict[str, Any]:
    """Run a command that writes a JSON report, and return it."""
    command = [sys.executable, "-c", MAIN, *map(str, arguments), "--json", "-"]
    print("$ openjev", *map(str, arguments), file=sys.stderr)
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def evaluated(name: str, data: str, engine: str, flags: list[str], *more: object) -> dict[str, Any]:
    """The report of one evaluation."""
    run = RUNS / f"{engine}-{name}.jsonl"
    return openjev("eval", CASES / data, "--run", run, *more, *flags)


def measures(report: dict[str, Any], by: str = "type") -> dict[str, Any]:
    """Group to measure to value and interval."""
    return {g["name"]: {"count": g["count"], **g["measures"]} for g in report["groups"] if g["by"] == by}


def flips(engine: str, flags: list[str]) -> dict[str, Any]:
    """Flip rates and measures with one order and with all, and the difference in pairs."""
    plain = evaluated("plain", "desk.jsonl", engine, flags)
    full = evaluated("full", "desk.jsonl", engine, flags, "--orders", "full")
    compared = openjev("eval", "--compare", RUNS / f"{engine}-plain.jsonl", RUNS / f"{engine}-full.jsonl")
    return {
        "model": plain["run"]["model"],
        "one order": {"flips": plain["flips"], "measures": measures(plain), "cost": plain["cost"]},
        "all orders": {"flips": full["flips"], "measures": measures(full), "cost": full["cost"]},
        "difference": {g["name"]: g["measures"] for g in compared["groups"] if g["by"] == "type"},
    }


def calibration(engine: str, flags: list[str]) -> list[dict[str, Any]]:
    """Calibration on held-out folds."""
    out, run = RUNS / f"{engine}-calibration.json", RUNS / f"{engine}-scores.jsonl"
    report = openjev("calibrate", CASES / "more.jsonl", "--out", out, "--run", run, *flags)
    kept = ("type", "question", "count", "form", "temperature", "bias", "measures")
    return [{key: group[key] for key in kept} for group in report["groups"]]


def prior(engine: str, flags: list[str]) -> dict[str, Any]:
    """With the label prior divided out against without, with one order and with all."""
    found = {}
    for name, orders in (("plain", "1"), ("full", "full")):
        evaluated(name, "desk.jsonl", engine, flags, "--orders", orders)
        with_prior = f"prior-{name}"
        evaluated(with_prior, "desk.jsonl", engine, flags, "--orders", orders, "--prior", "contentless", "--no-reorder")
        compared = openjev("eval", "--compare", RUNS / f"{engine}-{name}.jsonl", RUNS / f"{engine}-{with_prior}.jsonl")
        found[f"orders {orders}"] = {g["name"]: g["measures"] for g in compared["groups"]}
    return found


def labels(engine: str, flags: list[str]) -> dict[str, Any]:
    """Noul's own labels against letters, for the same questions, with one order and with all."""
    reports = {
        "own labels": evaluated("plain", "desk.jsonl", engine, flags),
        "own labels, all orders": evaluated("full", "desk.jsonl", engine, flags, "--orders", "full"),
        "letters": evaluated("lettered", "lettered.jsonl", engine, flags, "--no-reorder"),
        "letters, all orders": evaluated(
            "lettered-full", "lettered.jsonl", engine, flags, "--no-reorder", "--orders", "full"
        ),
    }
    nouls = list(measures(reports["letters"], "question"))
    found = {name: {one: measures(report, "question")[one] for one in nouls} for name, report in reports.items()}
    for name, run in (("own labels", "plain"), ("letters", "lettered")):
        found[name]["all"] = {"auroc over all questions": pooled_auroc(RUNS / f"{engine}-{run}.jsonl", nouls)}
    return found


def pooled_auroc(run: Path, questions: list[str]) -> float:
    """The AUROC of P(yes) over several questions at once: one threshold for all of them."""
    truth, scores = [], []
    for line in run.read_text("utf-8").splitlines()[1:]:
        record = json.loads(line)
        for question in questions:
            judged = record["questions"][question]
            yes = [name.lower() for name in judged["names"]].index("yes")
            truth.append(judged["label"] == yes)
            scores.append(judged["probabilities"][yes])
    return float(roc_auc_score(truth, scores))


def rotations(engine: str, flags: list[str]) -> dict[str, Any]:
    """What averaging over rotations of the order that the client gave would do: for a choice of four options.

    Every rotation of the given order and of its reverse is asked as a question of its own and averaged here.
    """
    data = RUNS / "rotations-data.jsonl"
    rows = [json.loads(line) for line in (CASES / "desk.jsonl").read_text("utf-8").splitlines()]
    asked = [rotated(row, name) for row in rows for name in ROTATED]
    data.write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    run = RUNS / f"{engine}-rotations.jsonl"
    openjev("eval", data, "--run", run, "--no-reorder", *flags)
    records = [json.loads(line) for line in run.read_text("utf-8").splitlines()[1:]]
    given, back, right, plain_flips = [], [], [], []
    for record in sorted(records, key=lambda one: one["row"]):
        answers = record["answers"]
        given.append(averaged([answers[key] for key in answers if key.startswith("given")]))
        back.append(averaged([answers[key] for key in answers if key.startswith("reversed")]))
        plain_flips.append(answers["given 0"]["choice"] != answers["reversed 0"]["choice"])
        right.append(asked[record["row"] - 1]["labels"]["given 0"])
    count = len(records)
    return {
        "questions": count,
        "flips, one order": sum(plain_flips) / count,
        "flips, rotations of the order given": sum(a != b for a, b in zip(given, back, strict=True)) / count,
        "accuracy, rotations of the order given": sum(a == b for a, b in zip(given, right, strict=True)) / count,
        "accuracy, rotations of its reverse": sum(a == b for a, b in zip(back, right, strict=True)) / count,
    }


def coherence(engine: str, flags: list[str], suites: list[str]) -> dict[str, Any]:
    """jevbench's scores, in percent of tests that hold, of a server that reads one order and of one that reads all."""
    found = {}
    for name, orders in (("one order", "1"), ("all orders", "full")):
        port = free_port()
        served = [sys.executable, "-c", MAIN, "serve", "--port", str(port), "--orders", orders, *flags]
        with subprocess.Popen(served, stderr=subprocess.DEVNULL) as server:
            try:
                wait_until_it_answers(port, server)
                found[name] = {suite: jevbench(port, engine, orders, suite, SUITES[suite]) for suite in suites}
            finally:
                server.terminate()
    return found


def jevbench(port: int, engine: str, orders: str, suite: str, more: tuple[str, ...]) -> dict[str, Any]:
    """One suite's report, its parts' scores only."""
    out = RUNS / f"{engine}-jevbench-{suite}-{orders}.json"
    if not out.exists():
        url = f"http://127.0.0.1:{port}/v1/systemone"
        command = [sys.executable, "-m", "jevbench", "eval", "--url", url, "--model", "jev-latest", "--suite", suite]
        subprocess.run([*command, *more, "--no-cache", "--out", str(out)], check=True, stdout=sys.stderr)
    scores = json.loads(out.read_text("utf-8"))["scores"]
    return {part: scores[part] for part in ("overall", "pillars", "groups")}


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def wait_until_it_answers(port: int, server: subprocess.Popen[bytes]) -> None:
    """Return once the server is healthy, or end when it ended."""
    while server.poll() is None:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/health", timeout=10).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.5)
    sys.exit("the server did not start")


def rotated(row: dict[str, Any], name: str) -> dict[str, Any]:
    """One question of a row, once per rotation of its options and of their reverse."""
    question, questions = row["questions"][name], {}
    options = list(question["criteria"].items())
    for direction, ordered in (("given", options), ("reversed", options[::-1])):
        for offset in range(len(ordered)):
            questions[f"{direction} {offset}"] = {**question, "criteria": dict(ordered[offset:] + ordered[:offset])}
    return {
        "id": f"{row['id']} {name}",
        "state": row["state"],
        "questions": questions,
        "labels": dict.fromkeys(questions, row["labels"][name]),
    }


def averaged(answers: list[dict[str, Any]]) -> str:
    """The choice of several answers: the option with the highest mean log-probability."""
    names = answers[0]["probabilities"]
    return max(names, key=lambda name: math.fsum(math.log(a["probabilities"][name]) for a in answers))


def cost(engine: str, flags: list[str]) -> dict[str, Any]:
    """Seconds of one order and of all, taken in turn, each on a state that was not read before."""
    given = dict(zip(flags[::2], flags[1::2], strict=True))
    settings = load_settings(os.environ, flags={k[2:].replace("-", "_"): v for k, v in given.items()}).settings
    return asyncio.run(timed(settings))


async def timed(settings: Settings) -> dict[str, Any]:
    """Medians over pairs."""
    seconds: dict[str, list[float]] = {"one order": [], "all orders": []}
    tokens: dict[str, int] = {}
    async with open_engine(settings) as engine:
        await engine.evaluate(state="Warm up.", questions={"q": QUESTION})
        for pair in range(PAIRS):
            for name, orders in (("one order", 1), ("all orders", "full")):
                # It differs from its first word on, so that nothing of it is known already.
                state = f"{name} {pair}. " + WORDS * 24
                started = time.perf_counter()
                evaluation = await engine.evaluate(state=state, questions={"q": QUESTION}, orders=orders)
                seconds[name].append(time.perf_counter() - started)
                tokens[name] = evaluation.usage.input_tokens - (evaluation.cached_tokens or 0)
                tokens["prefix"] = evaluation.prefix_tokens
    ratios = [full / one for one, full in zip(seconds["one order"], seconds["all orders"], strict=True)]
    return {
        "prefix_tokens": tokens.pop("prefix"),
        "computed_tokens": tokens,
        "median_seconds": {name: statistics.median(values) for name, values in seconds.items()},
        "median_ratio": statistics.median(ratios),
        "pairs": PAIRS,
    }


def main() -> None:
    """Run one measurement and write its summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = {
        "flips": flips,
        "calibration": calibration,
        "prior": prior,
        "labels": labels,
        "rotations": rotations,
        "cost": cost,
    }
    parser.add_argument("what", choices=[*kinds, "coherence"])
    parser.add_argument("--engine", default="embedded", help="a name for the results")
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=["examples"], help="jevbench's, for coherence")
    words = sys.argv[1:]
    border = words.index("--") if "--" in words else len(words)
    arguments = parser.parse_args(words[:border])
    RUNS.mkdir(parents=True, exist_ok=True)
    write_cases(CASES)
    flags = words[border + 1 :]
    if arguments.what == "coherence":
        found: Any = coherence(arguments.engine, flags, arguments.suites)
    else:
        found = kinds[arguments.what](arguments.engine, flags)
    out = RESULTS / f"trust-{arguments.what}-{arguments.engine}.json"
    out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(out)


if __name__ == "__main__":
    main()
