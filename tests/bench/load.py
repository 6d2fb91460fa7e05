"""Load and soak: the API on a double of SGLang with a realistic service time, every answer checked.

    uv run python tests/bench/load.py [grid] [soak] [--requests 100000] [--model DIR]

``grid`` prints throughput and latency for 1, 16 and 64 clients with 1, 8 and 64 questions. ``soak`` sends 100,000
requests, of which 10% hang up, 5% are bad and 1% meet a fault of the backend, and fails unless no answer was lost or
crossed, memory grew by less than 20 MB after the first tenth, and tasks and sockets are as many as at the start.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1] / "doubles"))

import httpx
import orjson
import psutil
from attrs import define, field, frozen
from bench_client import read_answer
from bench_processes import PEER_CORE, openjev
from load_traffic import make_traffic, shifted, wrong_answers
from sglang_double import SGLangDouble
from sglang_double_faults import Fault
from tiny_tokenizer import write_tiny_tokenizer

LATENCY, PREFILL_RATE = 0.008, 40_000.0
"""Seconds per prompt and tokens per second: a small model on a large GPU."""

STATE_TOKENS = 120
FAULTS = ("null_all", "missing", "text_500", "reset", "truncated", "aborted", "garbage")
BACKEND_FAILED = (502, 503)
MEMORY_GROWTH = 20_000_000


@define
class Tally:
    """What came back."""

    statuses: Counter = field(factory=Counter)
    latencies: list = field(factory=list)
    wrong: list = field(factory=list)
    hung_up: int = 0
    begun: int = 0


@frozen
class Mix:
    """Shares of requests that are not answered as usual."""

    hang_ups: float = 0.0
    bad: float = 0.0
    faults: float = 0.0


class Clients:
    """Closed-loop clients on keep-alive connections.

    Args:
        url: The API's.
        traffic: What to send.
        double: Where faults are asked for.
        mix: What else to do.
    """

    def __init__(self, url, traffic, double, mix):
        self._place = urlsplit(url)
        self._traffic = traffic
        self._chance = traffic.chance
        self._double = double
        self._mix = mix
        self.tally = Tally()

    async def run(self, count, clients, asked):
        """Send ``count`` requests; ``asked()`` says with how many questions each."""
        goal = self.tally.begun + count
        await asyncio.gather(*(self._client(goal, asked) for _ in range(clients)))

    async def _client(self, goal, asked):
        connection = None
        try:
            while self.tally.begun < goal:
                self.tally.begun += 1
                connection = connection or await asyncio.open_connection(self._place.hostname, self._place.port)
                if not await self._one(*connection, asked()):
                    connection[1].close()
                    connection = None
        finally:
            if connection is not None:
                connection[1].close()

    async def _one(self, reader, writer, asked):
        """One request; returns whether the connection can be used again."""
        draw = self._chance.random()
        mix = self._mix
        if draw < mix.hang_ups:
            body, _ = self._traffic.request(asked)
            writer.write(self._post(body, ())[: self._chance.choice([None, None, None, 300])])
            await asyncio.sleep(self._chance.random() * 0.03)
            self.tally.hung_up += 1
            return False
        if draw < mix.hang_ups + mix.bad:
            body, headers, wanted = self._traffic.bad_request()
            status, answer, reusable = await self._exchange(reader, writer, body, headers)
            if status != wanted:
                self.tally.wrong.append(f"a bad request got {status}, not {wanted}: {answer[:200]!r}")
            return reusable
        if draw < mix.hang_ups + mix.bad + mix.faults:
            self._double.faults.append(Fault(self._chance.choice(FAULTS), stage="branch"))
        body, expected = self._traffic.request(asked)
        began = time.perf_counter()
        status, answer, reusable = await self._exchange(reader, writer, body, ())
        if status == 200:
            self.tally.latencies.append(time.perf_counter() - began)
            self.tally.wrong += wrong_answers(expected, orjson.loads(answer))
        elif status not in BACKEND_FAILED or not mix.faults:
            self.tally.wrong.append(f"a good request got {status}: {answer[:200]!r}")
        return reusable

    async def _exchange(self, reader, writer, body, headers):
        writer.write(self._post(body, headers))
        status, answer, reusable = await read_answer(reader)
        self.tally.statuses[status] += 1
        return status, answer, reusable

    def _post(self, body, headers):
        lines = ["POST /v1/systemone HTTP/1.1", f"Host: {self._place.netloc}", f"Content-Length: {len(body)}", *headers]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@frozen
class Footprint:
    """What a server process holds, when it is idle."""

    resident: int
    tasks: int
    sockets: int


async def footprint(server, seconds=20.0):
    """Wait until nothing is in flight, then measure."""
    until = time.monotonic() + seconds
    while True:
        async with httpx.AsyncClient() as client:
            text = (await client.get(server.url + "/metrics", headers={"Connection": "close"})).text
        lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        idle = float(lines["openjev_evaluations_in_flight"]) == 0
        open_sockets = [
            c for c in server.process.net_connections("tcp") if c.laddr and c.status == psutil.CONN_ESTABLISHED
        ]
        inbound = [c for c in open_sockets if c.laddr.port == urlsplit(server.url).port]
        if (idle and not inbound) or time.monotonic() > until:
            return Footprint(server.resident_bytes(), int(float(lines["openjev_tasks"])), len(inbound))
        await asyncio.sleep(0.2)


def percentiles(latencies):
    """p50, p95, p99 in milliseconds."""
    cuts = statistics.quantiles(latencies, n=100)
    return " ".join(f"{cuts[p - 1] * 1000:8.1f}" for p in (50, 95, 99))


async def grid(server, traffic, double):
    """The table of clients and questions."""
    before = await footprint(server)
    print("clients questions  requests/s      p50      p95      p99  errors  statuses")
    for clients in (1, 16, 64):
        for asked in (1, 8, 64):
            load = Clients(server.url, traffic, double, Mix())
            count = max(30, min(1500, 6000 // asked) * min(clients, 16) // 16)
            began = time.perf_counter()
            await load.run(count, clients, lambda asked=asked: asked)
            rate = count / (time.perf_counter() - began)
            figures = percentiles(load.tally.latencies)
            print(
                f"{clients:7} {asked:9} {rate:11.1f} {figures} {len(load.tally.wrong):7}  {dict(load.tally.statuses)}"
            )
            if load.tally.wrong:
                print("    " + load.tally.wrong[0])
    after = await footprint(server)
    print(f"resident memory: {before.resident / 1e6:.1f} MB before, {after.resident / 1e6:.1f} MB after")
    return []


async def crossed_answers_are_noticed(server, traffic, double):
    """Whether the check of the answers works: it must refuse those of other questions."""
    load = Clients(server.url, shifted(traffic), double, Mix())
    await load.run(5, 1, lambda: 3)
    return len(load.tally.wrong) == 15


async def soak(server, traffic, double, requests):
    """The long run; returns what went wrong."""
    if not await crossed_answers_are_noticed(server, traffic, double):
        return ["the check of the answers takes crossed ones for right"]
    load = Clients(server.url, traffic, double, Mix(hang_ups=0.10, bad=0.05, faults=0.01))
    start = await footprint(server)
    began = time.perf_counter()
    marks = [await mark(server, load, began)]
    for _ in range(10):
        await load.run(requests // 10, 16, lambda: traffic.chance.choice((1, 1, 3, 3, 8)))
        double.faults.clear()
        marks.append(await mark(server, load, began))
    end = await footprint(server)
    tally = load.tally
    print(f"statuses: {dict(tally.statuses)}, hung up: {tally.hung_up}, wrong: {len(tally.wrong)}")
    print(f"latency of answers in ms, p50 p95 p99: {percentiles(tally.latencies)}")
    print(f"idle: {start} at the start, {end} at the end")
    growth = end.resident - marks[1].resident
    faults = [*tally.wrong[:5]]
    if growth >= MEMORY_GROWTH:
        faults.append(f"resident memory grew by {growth / 1e6:.1f} MB after the first tenth")
    if end.tasks > start.tasks:
        faults.append(f"{end.tasks} tasks at the end, {start.tasks} at the start")
    if end.sockets:
        faults.append(f"{end.sockets} connections at the end")
    return faults


async def mark(server, load, began):
    """Print where the soak stands."""
    here = await footprint(server)
    print(
        f"{load.tally.begun:7} requests {time.perf_counter() - began:7.0f} s  {here.resident / 1e6:6.1f} MB  "
        f"{here.tasks} tasks  {here.sockets} connections",
        flush=True,
    )
    return here


async def main(arguments):
    """Run what was asked for; the exit status."""
    psutil.Process().cpu_affinity([PEER_CORE % (psutil.cpu_count() or 1)])
    with tempfile.TemporaryDirectory() as folder:
        source = arguments.model or str(write_tiny_tokenizer(Path(folder) / "tiny"))
        traffic = await make_traffic(source, STATE_TOKENS)
        double = SGLangDouble(
            strict=False,
            model_path=source,
            latency=LATENCY,
            prefill_rate=PREFILL_RATE,
            context_length=40_000,
            vocab_size=300_000,
        )
        async with double.serving():
            flags = ("--connect", double.url, "--model", source, "--max-concurrent-requests", "64")
            starting = openjev(*flags)
            server = await asyncio.to_thread(starting.__enter__)
            try:
                faults = []
                if "grid" in arguments.what:
                    faults += await grid(server, traffic, double)
                if "soak" in arguments.what:
                    faults += await soak(server, traffic, double, arguments.requests)
            finally:
                with suppress(ProcessLookupError):
                    await asyncio.to_thread(starting.__exit__, None, None, None)
    for fault in faults:
        print(f"FAILED: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["grid", "soak"], help="grid, soak")
    parser.add_argument("--requests", type=int, default=100_000, help="of the soak")
    parser.add_argument("--model", help="a directory with tokenizer.json; a tiny byte-level tokenizer when absent")
    sys.exit(asyncio.run(main(parser.parse_args())))
