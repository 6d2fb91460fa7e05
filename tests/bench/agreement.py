"""How far engines that serve the same weights are apart: the same questions to each, probability by probability.

    uv run python tests/bench/agreement.py --model DIR NAME=URL NAME=URL ...

Each URL is a running server (SGLang, vLLM, a llama-server), DIR the directory of the model's tokenizer. Every pair of
engines has a line: the largest difference between two probabilities of one option, and the mean of the differences.
"""

from __future__ import annotations

import argparse
import itertools
import random

import numpy as np

from openjev_core import Settings, SyncEngine

TEAMS = {"billing": "Payments, invoices, refunds", "technical": "Bugs and outages", "sales": "Prices and contracts"}
QUESTIONS = {
    "team": {"type": "choice", "instructions": "Which team should this ticket go to?", "criteria": TEAMS},
    "urgent": {"type": "noul", "instructions": "Does this need an answer today?"},
    "mood": {"type": "score", "instructions": "How does the customer feel?", "criteria": ["Calm", "Cross", "Furious"]},
}
WORDS = "router lamp invoice error price update noise refund today week broken late thanks please charged twice".split()
STATES = 30
LONGEST = 2000
"""Tokens of a prompt: what the smallest of the servers takes."""


def states():
    """Texts of many lengths."""
    for number in range(STATES):
        drawn = random.Random(number)
        yield f"Ticket {number}: {' '.join(drawn.choices(WORDS, k=drawn.randint(5, 300)))}."


def probabilities(url, model):
    """Every probability that a server's engine gives, in one order."""
    settings = Settings(connect=url, model=model, max_input_tokens=LONGEST)
    found = []
    with SyncEngine(settings) as engine:
        for state in states():
            answers = engine.evaluate(state=state, questions=QUESTIONS).answers
            found += [*answers["team"]["probabilities"].values(), answers["urgent"]["noul"]]
            found += answers["mood"]["probabilities"].values()
    return np.array(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("servers", nargs="+", metavar="NAME=URL")
    args = parser.parse_args()
    read = {}
    for server in args.servers:
        name, _, url = server.partition("=")
        read[name] = probabilities(url, args.model)
    print(f"{len(next(iter(read.values())))} probabilities\n\n| | | largest difference | mean difference |")
    print("| --- | --- | --- | --- |")
    for (one, first), (other, second) in itertools.combinations(read.items(), 2):
        apart = np.abs(first - second)
        print(f"| {one} | {other} | {apart.max():.1e} | {apart.mean():.1e} |")


if __name__ == "__main__":
    main()
