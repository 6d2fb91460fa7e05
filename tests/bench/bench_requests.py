"""Requests to measure with: states of a wanted length, each its own, and questions of the three types in turn."""

from __future__ import annotations

import random

import orjson

WORDS = (
    "invoice order refund payment account ticket customer agent message delivery product service charge card bank "
    "email phone update error screen login password setting device battery cable order number street city country "
    "morning evening yesterday today week month please thanks waiting broken missing late wrong double again never"
).split()

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
    """A text of about this many tokens; one of the words above is about one token."""
    return " ".join(chance.choices(WORDS, k=tokens))


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
