"""A real vLLM: this server, and a bare client that fires the same calls.

    uv run python tests/bench/vllm.py --vllm URL --model DIR [--quick]

URL is a running vLLM, whose key is OPENJEV_BACKEND_API_KEY where it has one, DIR its model's directory. A state of 600
tokens, which is `cold` where vLLM has never seen it; `warm` is the same request once more. The bare client sends the
token ids that this server shows on `/v1/prompts`, in the calls that this server makes, from raw sockets. Rounds are
interleaved, each way in turn first; a round's states differ in their first number alone. Seconds on the clock; ratios
round by round.

Which calls these are: a cold state is warmed up and then its branches are read in one batch, which names the labels of
all of them; a single branch brings the state along. Asked again, the batch alone is sent, since its branches reused the
state; a single branch that brought it along is preceded by a warm-up, once.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import time
from pathlib import Path

import orjson
from bench_client import drive
from bench_parts import written
from bench_processes import openjev
from bench_requests import body, state

RESULTS = Path(__file__).with_name("results")
TOKENS = 600
KEY = "OPENJEV_BACKEND_API_KEY"
FIELDS = {
    "max_tokens": 1,
    "temperature": 0,
    "logprobs": 0,
    "return_tokens_as_token_ids": True,
    "add_special_tokens": False,
}


def call_bodies(shown, heat):
    """The calls that openjev makes."""
    if (len(shown.suffixes) > 1) == (heat == "cold"):
        yield orjson.dumps({"prompt": [shown.prefix], "logprob_token_ids": [0], **FIELDS})
    prompts = [[*shown.prefix, *suffix] for suffix in shown.suffixes]
    labels = [*range(union_size(shown))]
    yield orjson.dumps({"prompt": prompts, "logprob_token_ids": labels, **FIELDS})


def union_size(shown):
    """Labels that the questions have together: Yes and No, where one has own labels, and the letters of the longest."""
    longest = max(shown.labels)
    return longest + 2 if longest > 2 else longest


def sender(way, places, text, asked, heat):
    """What sends this way's request about a state."""
    vllm, own = places
    request = body(text, asked)
    if way == "openjev":
        return lambda: asyncio.run(drive(own, [request], 1))
    calls = [*call_bodies(written(own, request), heat)]
    return lambda: asyncio.run(drive(vllm, calls, 1, "/v1/completions", os.environ.get(KEY)))


def timed(send):
    began = time.perf_counter()
    send()
    return time.perf_counter() - began


def run(places, asked, rounds):
    """Seconds of each way, cold and warm, round by round."""
    found = {(way, heat): [] for way in ("openjev", "bare client") for heat in ("cold", "warm")}
    for turn in range(rounds):
        chance = random.Random(f"{turn}-{asked}-{time.time_ns()}")
        told = state(TOKENS, chance)
        ways = ["openjev", "bare client"]
        for way in ways[turn % 2 :] + ways[: turn % 2]:
            # As long as the other's and unlike it from its first token on.
            text = f"{chance.randrange(10**15, 10**16)} {told}"
            for heat in ("cold", "warm"):
                found[way, heat].append(timed(sender(way, places, text, asked, heat)))
    return found


def spread(values, digits=3):
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f}–{max(values):.{digits}f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", required=True)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--questions", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="three rounds")
    options = parser.parse_args()
    lines = ["| questions | state | openjev, s | bare client, s | openjev ÷ bare |", "| --- " * 5 + "|"]
    with openjev("--connect", options.vllm, "--model", options.model, "--max-input-tokens", "4096", core=None) as own:
        places = options.vllm, own.url
        run(places, 2, 1)  # connections, kernels, lazy imports
        for asked in options.questions:
            found = run(places, asked, 3 if options.quick else options.rounds)
            for heat in ("cold", "warm"):
                ours, floor = found["openjev", heat], found["bare client", heat]
                ratios = [one / least for one, least in zip(ours, floor, strict=True)]
                lines.append(f"| {asked} | {heat} | {spread(ours)} | {spread(floor)} | {spread(ratios, 2)} |")
            print("\n".join(lines[-2:]), flush=True)
    RESULTS.mkdir(exist_ok=True)
    head = "# A real vLLM, beside a bare client\n\nMedian [range of the rounds]. See ../vllm.py.\n\n"
    (RESULTS / "vllm.md").write_text(head + "\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
