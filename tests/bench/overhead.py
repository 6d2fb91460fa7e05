"""API overhead: what one API process costs per request, beside llm2jev, a bare hypercorn, and its unavoidable parts.

    uv run python tests/bench/overhead.py --model DIR --llm2jev PYTHON [--against PYTHON] [--quick]

DIR holds a tokenizer and chat template; PYTHON is an environment that has llm2jev 0.6.1, or for `--against` another
release of openjev, whose CPU time is compared with this one's. Everything runs against
one zero-latency SGLang double. Every request has a state of its own; questions repeat from request to request, as they
do in production. Rounds are interleaved; the table gives medians and, in brackets, the rounds' range.
CPU time is that of the server's process alone. Requests per second are wall-clock: the double and the load share the
other core, so where these are the slower side, the CPU column is the one to read.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from contextlib import ExitStack
from pathlib import Path

import bench_parts
import orjson
from bench_client import drive
from bench_processes import double, echo, llm2jev, openjev
from bench_requests import bodies

RESULTS = Path(__file__).with_name("results")
CELLS = [(clients, asked, tokens) for tokens in (100, 600, 8000) for asked in (1, 3, 32, 64) for clients in (1, 8, 64)]
LARGE = 1000
"""State tokens from which a cell takes long."""
QUICK = [(8, 3, 100), (8, 3, 600), (8, 32, 600), (1, 3, 600), (64, 3, 600)]
ROUNDS, ROUNDS_OF_LARGE = 9, 3
# The large cells are over the default limits: 64 questions about 8,000 tokens submit over half a million, and 64
# clients with 64 questions each want 4,096 branches at once, where 64 are allowed and the others wait for their turn.
RAISED = (
    *("--max-total-input-tokens", 2_000_000, "--max-input-tokens", 32_768),
    *("--max-concurrent-requests", 64, "--max-concurrent-branches", 4096),
)


def requests_of(tokens, clients):
    """How many requests a round has: enough to measure and for each client to send several, few enough to finish."""
    if tokens >= LARGE:
        return max(16, 2 * clients)
    return max(200, 10 * clients)


def measure(server, sent, clients):
    """CPU milliseconds per request and requests per second."""
    before = server.cpu_seconds()
    load = asyncio.run(drive(server.url, sent, clients))
    return (server.cpu_seconds() - before) / len(sent) * 1000, len(sent) / load.seconds


def spread(values):
    """A median with its range."""
    return f"{statistics.median(values):.2f} [{min(values):.2f}–{max(values):.2f}]"


def run(servers, peer, cells, model):
    """Every cell of the table, as rows."""
    rows = []
    for clients, asked, tokens in cells:
        rounds = ROUNDS_OF_LARGE if tokens >= LARGE else ROUNDS
        count = requests_of(tokens, clients)
        figures = {server.name: [] for server in servers}
        parts = []
        for turn in range(rounds):
            for place, server in enumerate(servers):
                sent = bodies(count, tokens=tokens, asked=asked, seed=f"{turn}-{place}-{clients}-{asked}-{tokens}")
                figures[server.name].append(measure(server, sent, clients))
            parts.append(bench_parts.measure(model, peer.url, servers[0].url, tokens=tokens, asked=asked, seed=turn))
        rows.append(row_of(clients, asked, tokens, figures, parts))
        print(line_of(rows[-1]), flush=True)
    return rows


def row_of(clients, asked, tokens, figures, parts):
    cpu = {name: [round_[0] for round_ in rounds] for name, rounds in figures.items()}
    rate = {name: [round_[1] for round_ in rounds] for name, rounds in figures.items()}
    # Each round's own parts: noise of the machine hits both sides of a ratio.
    unavoidable = [bare + sum(part.values()) for bare, part in zip(cpu["echo"], parts, strict=True)]
    row = {
        "clients": clients,
        "questions": asked,
        "state_tokens": tokens,
        "cpu_ms": {name: spread(values) for name, values in cpu.items()},
        "requests_per_second": {name: spread(values) for name, values in rate.items()},
        "unavoidable_cpu_ms": spread(unavoidable),
        "parts_cpu_ms": {name: statistics.median(part[name] for part in parts) for name in parts[0]},
        "overhead_ratio": spread([own / least for own, least in zip(cpu["openjev"], unavoidable, strict=True)]),
    }
    if "against" in cpu:
        row["times_against"] = spread([own / other for own, other in zip(cpu["openjev"], cpu["against"], strict=True)])
    if "llm2jev" in rate:
        pairs = zip(rate["openjev"], rate["llm2jev"], strict=True)
        row["times_llm2jev"] = spread([own / other for own, other in pairs])
    return row


def line_of(row):
    cpu = "  ".join(f"{name} {value}" for name, value in row["cpu_ms"].items())
    return (
        f"{row['clients']:>2} clients {row['questions']:>2} questions {row['state_tokens']:>4} tokens | "
        f"CPU ms: {cpu} | "
        f"unavoidable {row['unavoidable_cpu_ms']} ratio {row['overhead_ratio']} | "
        f"{row.get('times_against', '-')} × against | "
        f"rps {row['requests_per_second']['openjev']} = {row.get('times_llm2jev', '-')} × llm2jev"
    )


def table_of(rows):
    """The rows as a page."""
    columns = (
        "clients",
        "questions",
        "state tokens",
        "CPU ms",
        "unavoidable",
        "ratio",
        "requests/s",
        "× llm2jev",
        "its CPU ms",
    )
    lines = ["# API overhead", "", "Median [range of the rounds]. See ../overhead.py.", ""]
    lines += [f"| {' | '.join(columns)} |", "| --- " * len(columns) + "|"]
    for row in rows:
        cells = [row["clients"], row["questions"], row["state_tokens"], row["cpu_ms"]["openjev"]]
        cells += [row["unavoidable_cpu_ms"], row["overhead_ratio"], row["requests_per_second"]["openjev"]]
        cells += [row.get("times_llm2jev", "-"), row["cpu_ms"].get("llm2jev", "-")]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--llm2jev", type=Path, help="a Python that has llm2jev; left out of the table without")
    parser.add_argument("--against", type=Path, help="a Python that has another release of openjev")
    parser.add_argument("--quick", action="store_true", help="five cells")
    options = parser.parse_args()
    with ExitStack() as stack:
        peer = stack.enter_context(double("--vocab-size", 260_000, "--model-path", options.model))
        flags = ("--connect", peer.url, "--model", options.model, *RAISED)
        servers = [
            stack.enter_context(openjev(*flags)),
            stack.enter_context(echo()),
        ]
        if options.against:
            servers.append(stack.enter_context(openjev(*flags, python=options.against, name="against")))
        if options.llm2jev:
            servers.append(stack.enter_context(llm2jev(options.llm2jev, options.model, peer.url)))
        rows = run(servers, peer, QUICK if options.quick else CELLS, options.model)
    name = "overhead-quick" if options.quick else "overhead"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2))
    (RESULTS / f"{name}.md").write_text(table_of(rows), "utf-8")


if __name__ == "__main__":
    main()
