"""Batch against calls: which way to send branches to a real SGLang is the faster one.

::

    uv run python tests/bench/sglang_fanout.py --sglang DIR --frontend rust

DIR has ``venv`` and the checkpoint ``smollm2``; the server is launched as the product does. Rounds are interleaved, and
every round has a prefix of its own. The table gives medians over the rounds with their middle half: seconds on the
clock, and processor seconds of SGLang's processes and of this one, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "doubles"))

from attrs import frozen
from sglang_fixtures import launched_real_sglang

from openjev_core.backends.protocol import Branch
from openjev_core.backends.sglang import SGLangBackend, open_sglang
from openjev_core.launch.guardian import descendants
from openjev_core.prompts.session import routing_key
from openjev_core.settings import Settings

LABELS = (49, 50, 51, 52)
FANOUTS = ("batch", "calls")


def prompt(rng: random.Random, length: int) -> tuple[int, ...]:
    """Random token ids."""
    return tuple(rng.randrange(100, 40_000) for _ in range(length))


@frozen
class Cost:
    """What the branches of one evaluation took, in seconds."""

    clock: float
    server: float
    client: float


def processor_seconds(pids: list[int]) -> float:
    """Of these processes so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


async def evaluate(backend: SGLangBackend, pids: list[int], prefix: tuple[int, ...], wanted: list[Branch]) -> Cost:
    """Warm, then read, and time the reading."""
    async with backend.prefix(prefix, key=routing_key(prefix)) as warm:
        clock, server, client = time.perf_counter(), processor_seconds(pids), time.process_time()
        await warm.read(wanted)
        return Cost(time.perf_counter() - clock, processor_seconds(pids) - server, time.process_time() - client)


def cell(values: list[float], scale: float = 1e3) -> str:
    """Median and middle half."""
    low, middle, high = statistics.quantiles(values, n=4)
    digits = 0 if scale * middle >= 10 else 2
    return f"{scale * middle:.{digits}f} ({scale * low:.{digits}f} to {scale * high:.{digits}f})"


async def measure(backend: SGLangBackend, pids: list[int], arguments: argparse.Namespace) -> None:
    """Print the table."""
    rng = random.Random(5)
    print("| questions, way | clock, ms | SGLang, CPU-ms | client, CPU-ms |\n| --- | --- | --- | --- |")
    for questions in arguments.questions:
        costs: dict[str, list[Cost]] = {fanout: [] for fanout in FANOUTS}
        for number in range(arguments.rounds):
            # Each goes first in half of the rounds.
            for fanout in FANOUTS if number % 2 else reversed(FANOUTS):
                backend.fanout = fanout
                wanted = [Branch(prompt(rng, 20), LABELS) for _ in range(questions)]
                costs[fanout].append(await evaluate(backend, pids, prompt(rng, arguments.state), wanted))
        for fanout in FANOUTS:
            cells = [cell([getattr(cost, name) for cost in costs[fanout]]) for name in ("clock", "server", "client")]
            print(f"| {questions}, {fanout} | {' | '.join(cells)} |")
        pairs = list(zip(costs["batch"], costs["calls"], strict=True))
        ratios = [cell([b.clock / a.clock for a, b in pairs], 1), cell([b.server / a.server for a, b in pairs], 1)]
        client = cell([b.client / a.client for a, b in pairs], 1)
        print(f"| {questions}, calls over batch | {' | '.join(ratios)} | {client} |", flush=True)


async def main(arguments: argparse.Namespace) -> None:
    """Launch, measure, stop."""
    with launched_real_sglang(arguments.sglang, arguments.frontend) as server:
        settings = Settings(request_timeout=600)
        async with open_sglang(server.url, settings, vocab_size=server.vocab_size, api_key=server.api_key) as backend:
            await measure(backend, sorted(descendants(server.launcher.pid)), arguments)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sglang", type=Path, required=True)
    parser.add_argument("--frontend", choices=["rust", "python"], default="rust")
    parser.add_argument("--state", type=int, default=200, help="tokens of the prefix")
    parser.add_argument("--questions", type=int, nargs="+", default=[1, 3, 8, 32])
    parser.add_argument("--rounds", type=int, default=9)
    asyncio.run(main(parser.parse_args()))
