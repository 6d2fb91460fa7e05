"""A real SGLang: this server, llm2jev, a bare client that fires the same calls, and SGLang's own `/v1/score`.

    uv run python tests/bench/sglang.py --sglang URL --model DIR --llm2jev PYTHON [--quick]

URL is a running SGLang (its Python front end: the Rust one has no `/v1/score`), DIR its model's directory, PYTHON an
environment that has llm2jev. A state of 600 tokens, which is `cold` where SGLang has never seen it; `warm` is the same
request once more. The bare client sends the token ids that this server shows on `/v1/prompts`, in the calls that it
would make: a warm-up and one batch, or a single call for one question, from raw sockets. `/v1/score` gets the same ids
as a query and items. Rounds are interleaved, each way in turn first; a round's states differ in their first number
alone. Seconds on the clock, and CPU seconds of SGLang's processes, which other work on the machine disturbs less;
ratios round by round.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import psutil
from attrs import frozen
from bench_client import drive
from bench_parts import call_bodies, written
from bench_processes import cpu_clock, llm2jev, openjev
from bench_requests import body, state

RESULTS = Path(__file__).with_name("results")
TOKENS = 600
WAYS = ("openjev", "bare client", "llm2jev", "/v1/score")


@frozen
class Places:
    """Where everything answers."""

    sglang: str
    openjev: str
    llm2jev: str | None
    processes: list[psutil.Process]

    def cpu(self):
        """CPU seconds of SGLang so far."""
        return sum(time.clock_gettime(cpu_clock(process.pid)) for process in self.processes)


def processes_of(url):
    """SGLang's processes: the one that listens, and its children."""
    port = urlsplit(url).port
    (pid,) = {c.pid for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port == port}
    main = psutil.Process(pid)
    return [main, *main.children(recursive=True)]


def sender(way, places, text, asked):
    """What sends this way's request about a state."""
    request = body(text, asked)
    if way in ("openjev", "llm2jev"):
        url = places.openjev if way == "openjev" else places.llm2jev
        return lambda: asyncio.run(drive(url, [request], 1))
    shown = written(places.openjev, request)
    if way == "bare client":
        return lambda: asyncio.run(
            drive(places.sglang, [*call_bodies(shown, f"{time.time_ns():032x}")], 1, "/generate")
        )
    scored = {"query": shown.prefix, "items": shown.suffixes, "label_token_ids": [32, 33], "apply_softmax": True}
    content = orjson.dumps({"model": "default", **scored})
    return lambda: asyncio.run(drive(places.sglang, [content], 1, "/v1/score"))


def timed(places, send):
    cpu, began = places.cpu(), time.perf_counter()
    send()
    return time.perf_counter() - began, places.cpu() - cpu


def spread(values):
    return f"{statistics.median(values):.2f} [{min(values):.2f}–{max(values):.2f}]"


def run(places, ways, asked, rounds):
    """Cold and warm figures of each way, as (clock, CPU) per round."""
    found = {(way, heat): [] for way in ways for heat in ("cold", "warm")}
    for turn in range(rounds):
        chance = random.Random(f"{turn}-{asked}-{time.time_ns()}")
        told = state(TOKENS, chance)
        for way in ways[turn % len(ways) :] + ways[: turn % len(ways)]:
            # As long as the others' and unlike them from its first token on.
            text = f"{chance.randrange(10**15, 10**16)} {told}"
            send = sender(way, places, text, asked)
            for heat in ("cold", "warm"):
                found[way, heat].append(timed(places, send))
    return found


def lines_of(asked, found, ways):
    for heat in ("cold", "warm"):
        floor = found["bare client", heat]
        for way in ways:
            rounds = found[way, heat]
            ratios = [
                spread([one[part] / least[part] for one, least in zip(rounds, floor, strict=True)]) for part in (0, 1)
            ]
            cells = [spread([one[part] for one in rounds]) for part in (0, 1)]
            yield f"| {asked} | {heat} | {way} | {cells[0]} | {cells[1]} | {ratios[0]} | {ratios[1]} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sglang", required=True)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--llm2jev", type=Path, help="a Python that has llm2jev; left out of the table without")
    parser.add_argument("--questions", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two rounds")
    options = parser.parse_args()
    ways = [way for way in WAYS if way != "llm2jev" or options.llm2jev]
    lines = ["| questions | state | way | s | SGLang, CPU s | s ÷ bare | CPU ÷ bare |", "| --- " * 7 + "|"]
    with ExitStack() as stack:
        own = stack.enter_context(openjev("--connect", options.sglang, "--model", options.model, "--skip-checks"))
        peer = stack.enter_context(llm2jev(options.llm2jev, options.model, options.sglang)) if options.llm2jev else None
        places = Places(options.sglang, own.url, peer.url if peer else None, processes_of(options.sglang))
        run(places, ways, 1, 1)  # connections, kernels, lazy imports
        for asked in options.questions:
            found = run(places, ways, asked, 2 if options.quick else options.rounds)
            lines += lines_of(asked, found, ways)
            print("\n".join(lines[-8:]), flush=True)
            RESULTS.mkdir(exist_ok=True)
            head = "# A real SGLang, beside its peers\n\nMedian [range of the rounds]. See ../sglang.py.\n\n"
            (RESULTS / "sglang-peers.md").write_text(head + "\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
