"""Basic sanity of the answers: what any model worth deploying gets right. Not for demo models."""

from __future__ import annotations

from typing import Any

from openjev_core.smoke.answers import Question
from openjev_core.smoke.checks import Check
from openjev_core.smoke.examination import Examination
from openjev_core.smoke.verdicts import Mismatch

MARGIN = 0.2
"""How much higher P(yes) has to be where it should be high."""

REFUND = "I was charged twice for my March invoice. Please send me the second payment back."
THANKS = "Thank you so much, everything works perfectly now. Have a lovely day!"
FURIOUS = "This is the FOURTH time your service is down this week! I am sick of it, you are costing me my customers!!!"
OUTAGE = "Since this morning your API answers every call with error 500 and our integration is down."

WANTS_REFUND = {"type": "noul", "instructions": "Is the customer asking for money back?"}
TEAMS = {
    "billing": "Payments, invoices, refunds",
    "technical": "Bugs, outages, integrations",
    "sales": "Quotes and new contracts",
}


def chat(*turns: str) -> list[dict[str, str]]:
    """A transcript that begins with the user."""
    return [{"role": ("user", "assistant")[i % 2], "content": turn} for i, turn in enumerate(turns)]


def higher(name: str, question: Question, high: Any, low: Any) -> Check:
    """P(yes) is clearly higher for one state than for another."""

    async def run(examination: Examination) -> None:
        upper = (await examination.ask(high, question))["noul"]
        lower = (await examination.ask(low, question))["noul"]
        if not upper >= lower + MARGIN:
            raise Mismatch(
                f"expected P(yes) to be at least {MARGIN} higher for the first state than for the second, "
                f"found {upper:.4f} and {lower:.4f}"
            )

    return Check(f"sense: {name}", run)


def chosen(name: str, state: Any, criteria: dict[str, str], expected: str) -> Check:
    """The right option is chosen, wherever it stands."""

    async def run(examination: Examination) -> None:
        instructions = "Which team should handle this message?"
        for order in (list(criteria), list(criteria)[::-1]):
            options = {option: criteria[option] for option in order}
            answer = await examination.ask(state, {"type": "choice", "instructions": instructions, "criteria": options})
            if answer["choice"] != expected:
                raise Mismatch(f"expected {expected!r} of {order}, found {answer['choice']!r}")

    return Check(f"sense: {name}", run)


async def anger(examination: Examination) -> None:
    """A furious message scores higher than a grateful one."""
    levels = ["Calm or pleased", "Annoyed", "Very angry"]
    question = {"type": "score", "instructions": "How angry is the customer?", "criteria": levels}
    furious = (await examination.ask(FURIOUS, question))["score"]
    grateful = (await examination.ask(THANKS, question))["score"]
    if not furious >= grateful + MARGIN:
        raise Mismatch(
            f"expected the score of the furious message to be at least {MARGIN} higher than the grateful one's, "
            f"found {furious:.4f} and {grateful:.4f}"
        )


SEMANTICS: tuple[Check, ...] = (
    higher("a refund request is more of one than a thank-you", WANTS_REFUND, REFUND, THANKS),
    chosen("an invoice goes to billing", REFUND, TEAMS, "billing"),
    chosen("an outage goes to the technical team", OUTAGE, TEAMS, "technical"),
    Check("sense: fury scores higher than thanks", anger),
    higher(
        "a transcript is read to its end",
        {"type": "noul", "instructions": "Does the user want to cancel the contract?"},
        chat("Hello, I have a question.", "Of course, what is it?", "I want to cancel my contract at once."),
        chat("Hello, I have a question.", "Of course, what is it?", "At what time do you open on Sunday?"),
    ),
    higher(
        "a field of a structured state is read",
        {"type": "noul", "instructions": "Has the order arrived at the customer?"},
        {"order": {"id": 7421, "status": "delivered to the customer", "paid": True}},
        {"order": {"id": 7421, "status": "lost in transit", "paid": True}},
    ),
)
