"""The embedded engine, beside what it replaces, its peers, and the tokens that have to be computed at least.

    uv run python tests/bench/embedded.py [--quick]

The demo model, a state of 600 tokens, 8 and 32 questions; `cold` where the server has never seen the state, `warm` the
same request once more. All ways run on the same file and the same llama.cpp; `openjev` is `openjev serve` with its
default settings:

- `limit`: prefix and suffixes, each once, as one prompt to `/completion`; warm, the suffixes behind a prefix that is
  still in the cache. Batch and waiting of the threads are those that were fastest for it in this run.
- `whole prompts`: a prompt per question with the state in it, nothing reused.
- `/v1/systemone`: llama.cpp's own route, which answers from decision models only: from a file that is marked as one and
  writes the same prompts (`decision_gguf.py`), with as many slots as are fastest for it.

Batching branches of several questions, as llama.cpp's route does with more than one slot, makes an answer depend on the
other questions. So it is also measured how far a probability moves when questions are added to a request, for each.

Rounds are interleaved, each way in turn first, all on the same state. Seconds on the clock, and CPU seconds of the
server's process; the ratio to the limit, on the clock, round by round. The memory of the engine is printed too.
"""

from __future__ import annotations

import argparse
import random
import signal
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

import httpx
import orjson
from attrs import asdict
from bench_parts import written
from bench_processes import openjev
from bench_requests import body, state
from decision_gguf import template, write_decision_gguf
from embedded_ways import BATCHES, OPENMP, Asked, Limit, Systemone, WholePrompts, fastest

from openjev_core.backends.llamacpp.embedded import default_threads
from openjev_core.backends.llamacpp.model_file import demo_model_path

RESULTS = Path(__file__).with_name("results")
TOKENS, QUESTIONS = 600, (8, 32)
SLOTS = (1, 4)
HEATS = ("cold", "warm")
SMALL_CONTEXT = 1024
WARM_UP_TOKENS, TRIED_TOKENS = 20, 200
MANY = 16
"""Questions above which one round has to do for `--quick`."""
MARK = "MARK"


def asked_of(url, tokens, questions, seed):
    """A request, with the token ids that this server writes for it."""
    request = body(state(tokens, random.Random(f"{seed}-{time.time_ns()}")), questions)
    shown = written(url, request)
    return Asked(request, shown.prefix, shown.suffixes)


def decision_model(url, model, path):
    """A model's file as one that llama.cpp's own route answers from, with this server's prompts."""
    headers = {"content-type": "application/json"}
    shown = (
        httpx.post(f"{url}/v1/prompts", content=body(MARK, 1), headers=headers, timeout=60).raise_for_status().json()
    )
    before, after = shown["prefix"].split(MARK)
    prompt = shown["branches"][0]["prompt"]
    ending = prompt[prompt.rindex("the answer is no") + len("the answer is no") :]
    write_decision_gguf(model, path, template(before, after, ending))
    return path


def opened(stack, options):
    """Every way by its name, and the settings that were fastest."""
    threads, rounds = default_threads(), 1 if options.quick else 3
    own = stack.enter_context(openjev(core=None))
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    tried = [asked_of(own.url, TRIED_TOKENS if options.quick else TOKENS, 8, turn) for turn in range(rounds + 1)]
    model = demo_model_path()
    limits = [{"batch": batch, "waiting": waiting} for batch in BATCHES for waiting in OPENMP[options.quick :]]
    limit, server = stack.enter_context(
        fastest(model, threads, lambda server, turn: Limit(server).cold(tried[turn]), limits, rounds)
    )
    slots = [{**limit, "slots": slots} for slots in SLOTS]
    decision = decision_model(own.url, model, folder / "decision.gguf")
    systemone, peer = stack.enter_context(
        fastest(decision, threads, lambda server, turn: Systemone(server).cold(tried[turn]), slots, rounds)
    )
    ways = {
        "openjev": Systemone(own),
        "limit": Limit(server),
        "whole prompts": WholePrompts(server),
        "/v1/systemone": Systemone(peer),
    }
    chosen = {"limit": limit, "/v1/systemone": systemone}
    return ways, {"xllamacpp": version("xllamacpp"), "threads": threads, **chosen}


def heats(name):
    return ("cold",) if name == "whole prompts" else HEATS


def run(ways, asked, rounds, tokens=TOKENS):
    """The times of each way and heat, round by round."""
    found = {(name, heat): [] for name in ways for heat in heats(name)}
    names = list(ways)
    for turn in range(rounds):
        request = asked_of(ways["openjev"].server.url, tokens, asked, turn)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            for heat in heats(name):
                found[name, heat].append(getattr(ways[name], heat)(request))
    return found


def spread(values):
    return f"{statistics.median(values):.2f} [{min(values):.2f}–{max(values):.2f}]"


def lines_of(asked, found):
    for heat in HEATS:
        for name in dict.fromkeys(name for name, _ in found):
            # A way that reuses nothing takes as long the second time.
            took = found.get((name, heat), found[name, "cold"])
            cells = [spread([one.clock for one in took]), spread([one.cpu for one in took])]
            pairs = zip(took, found["limit", heat], strict=True)
            cells.append(spread([one.clock / limit.clock for one, limit in pairs]))
            yield f"| {asked} | {heat} | {name} | {' | '.join(cells)} |"


def moves(ways):
    """By way, the most that a probability of 1 or 2 questions moved when they became 8, over a few states.

    With llama.cpp's several slots, 3 questions fill its faster attention (64 tokens) as 8 do, and do not move.
    """
    texts = [state(TOKENS // 4, random.Random(seed)) for seed in range(3)]
    return {
        name: max(way.moved(body(text, few), body(text, 8)) for text in texts for few in (1, 2))
        for name, way in ways.items()
        if name in ("openjev", "/v1/systemone")
    }


def memory(server):
    """Resident MiB of the engine with its default context, and with a small one."""
    with openjev("--max-input-tokens", str(SMALL_CONTEXT), core=None) as small:
        return {
            "default": server.resident_bytes() / 2**20,
            f"{SMALL_CONTEXT} tokens of context": small.resident_bytes() / 2**20,
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, nargs="+", default=list(QUESTIONS))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="two rounds; one of 32 questions")
    options = parser.parse_args()
    # The default would leave the servers behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    lines, measured = ["| questions | state | way | s | CPU s | s ÷ limit |", "| --- " * 6 + "|"], []
    with ExitStack() as stack:
        ways, settings = opened(stack, options)
        resident = memory(ways["openjev"].server)
        notes = [f"Settings: {settings}.", f"Resident MiB: { ({k: round(v) for k, v in resident.items()}) }."]
        moved = moves(ways)
        notes.append(f"A probability moves by at most, when questions are added: {moved}.")
        print("\n".join(notes), flush=True)
        run(ways, 1, 1, tokens=WARM_UP_TOKENS)  # connections, lazy imports
        for asked in options.questions:
            found = run(ways, asked, options.rounds if not options.quick else 2 if asked <= MANY else 1)
            lines += lines_of(asked, found)
            print("\n".join(lines[-2 * len(ways) :]), flush=True)
            measured += [
                {"questions": asked, "way": name, "state": heat, "rounds": [asdict(one) for one in took]}
                for (name, heat), took in found.items()
            ]
    RESULTS.mkdir(exist_ok=True)
    kept = {"settings": settings, "resident_mib": resident, "moved": moved, "cells": measured}
    (RESULTS / "embedded.json").write_bytes(orjson.dumps(kept, option=orjson.OPT_INDENT_2))
    title = (
        "# The embedded engine, beside its peers and its limit\n\nMedian [range of the rounds]. See ../embedded.py.\n\n"
    )
    (RESULTS / "embedded.md").write_text(title + "\n".join(lines) + "\n\n" + "\n\n".join(notes) + "\n", "utf-8")


if __name__ == "__main__":
    main()
