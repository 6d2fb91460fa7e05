"""Requests to measure with: states of a wanted length, each its own, and questions of the three types in turn."""

from __future__ import annotations

import functools
import random
from pydoc_data import topics

import orjson

CHARACTERS_PER_TOKEN = 4.2
"""Of English prose and code, by the tokenizers of Qwen3.6 and SmolLM2."""

QUESTIONS = (
    {"type": "noul", "instructions": "Is the customer asking for money back?"},
    {
        "type": "choice",
        "instructions": "Which team should handle this ticket?",
        "criteria": {
            "billing": "Payments, invoices, refunds",
            "technical": "Bugs, outages, integrations",
            "sales": "Pricing questions, upgrades, new contracts",
        },
    },
    {"type": "score", "instructions": "How frustrated is the customer?", "criteria": ["Calm", "Frustrated", "Angry"]},
)


def state(tokens, chance):
    """A text of about this many tokens, which begins like no other: a piece of the Python manual, prose with code."""
    manual = prose()
    length = int(tokens * CHARACTERS_PER_TOKEN)
    start = chance.randrange(len(manual) - length)
    return f"{chance.getrandbits(64):016x} {manual[start : start + length]}"[:length]


@functools.cache
def prose():
    """The part of the Python manual that comes with Python: nearly half a million characters."""
    return "\n\n".join(topics.topics.values())


def questions(count):
    """Questions of every type, each with words of its own."""
    chosen = {}
    for index in range(count):
        question = dict(QUESTIONS[index % len(QUESTIONS)])
        question["instructions"] = f"{question['instructions']} ({index})"
        chosen[f"q{index}"] = question
    return chosen


def body(text, asked):
    """A request about a state."""
    return orjson.dumps({"model": "jev-latest", "state": text, "questions": questions(asked)})


def bodies(count, *, tokens, asked, seed):
    """Request bodies, no two with the same state."""
    chance = random.Random(seed)
    return [body(state(tokens, chance), asked) for _ in range(count)]
