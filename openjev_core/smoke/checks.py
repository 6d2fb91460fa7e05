"""The checks: what is asked of the server, and what its answers must be like."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import field, frozen

from openjev_core.errors import RequestError
from openjev_core.plugins.registry import Registry
from openjev_core.plugins.strict import Structurer
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.question import QuestionType
from openjev_core.smoke.server import Call, Mismatch, Server, brief

PATH = "/v1/systemone"
TOLERANCE = 1e-6
"""How far a sum of full-precision probabilities may be from 1."""

MARGIN = 0.2
"""How much higher P(yes) has to be where it should be high."""

Question = Mapping[str, Any]

MESSAGE = "Hi, I was charged twice for my March invoice and I would like the second payment back, please."
NOUL = {"type": "noul", "instructions": "Is the customer asking for money back?"}
TEAMS = {
    "billing": "Payments, invoices, refunds",
    "technical": "Bugs, outages, integrations",
    "sales": "Quotes and new contracts",
}
CHOICE = {"type": "choice", "instructions": "Which team should handle this message?", "criteria": TEAMS}
SCORE = {
    "type": "score",
    "instructions": "How angry is the customer?",
    "criteria": ["Calm or pleased", "Annoyed", "Very angry"],
}
CANCELS = {"type": "noul", "instructions": "Does the user want to cancel the contract?"}
ARRIVED = {"type": "noul", "instructions": "Has the order arrived at the customer?"}

THANKS = "Thank you so much, everything works perfectly now. Have a lovely day!"
FURIOUS = "This is the FOURTH time your service is down this week! I am sick of it, you are costing me my customers!!!"
OUTAGE = "Since this morning your API answers every call with error 500 and our integration is down."


@frozen
class Check:
    """One check.

    Attributes:
        name: For people and for the report.
        run: Raises ``Mismatch`` where the server does not do what is expected.
    """

    name: str
    run: Callable[[Examination], Awaitable[None]]


@frozen
class Examination:
    """What a check works with.

    Attributes:
        server: Makes the calls.
        model: The model that ``/health`` names.
        registry: The question types that are installed here.
        notes: Receives what a person should know beside the verdicts.
        masses: Receives how much of the model's probability the labels held, of each answer that says so.
    """

    server: Server
    model: str
    registry: Registry
    notes: list[str]
    masses: list[float] = field(factory=list)

    async def evaluate(self, state: Any, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """The answers to questions about a state, each checked.

        Raises:
            Mismatch: The reply is no evaluation of these questions by this model.
        """
        call = await self.server.post(PATH, {"model": "jev-latest", "state": state, "questions": dict(questions)})
        reply = call.json(200)
        match reply:
            case {"model": self.model, "answers": dict(answers), "usage": {"input_tokens": int()}}:
                pass
            case _:
                raise Mismatch(f"expected model {self.model!r}, answers and usage, found {brief(reply)}")
        if list(answers) != list(questions):
            raise Mismatch(f"expected answers to {list(questions)}, in this order, found {brief(list(answers))}")
        if call.count("x-openjev-prefix-tokens") is None:
            raise Mismatch("expected a header x-openjev-prefix-tokens; does a proxy remove it?")
        call.count("x-openjev-cached-tokens")
        for question_id, question in questions.items():
            if question_type := self.registry.types.get(question["type"]):
                check_answer(question_type, answers[question_id])
        self.masses.extend(answer["x_label_mass"] for answer in answers.values() if "x_label_mass" in answer)
        return answers

    async def ask(self, state: Any, question: Question) -> Any:
        """The answer to one question."""
        return (await self.evaluate(state, {"q": question}))["q"]

    async def limit(self, name: str) -> int:
        """One of the limits that ``/v1/limits`` names."""
        limits = await self.server.get("/v1/limits")
        value = limits.get(name) if isinstance(limits, dict) else None
        if type(value) is not int or value < 1:
            raise Mismatch(f"expected /v1/limits to name {name}, found {brief(limits)}")
        return value


def check_answer(question_type: QuestionType[Any, Any], answer: Any) -> None:
    """Compare an answer with its type's own class, and its probabilities with what probabilities are.

    Raises:
        Mismatch: A field is missing, unknown or of the wrong kind, or probabilities are not within 0 and 1 or do not
            sum to 1.
    """
    what = f"an answer of type {question_type.name}"
    if not isinstance(answer, dict) or answer.get("type") != question_type.name:
        raise Mismatch(f"expected {what}, found {brief(answer)}")
    fields = {name: value for name, value in answer.items() if name != "type" and not name.startswith("x_")}
    try:
        Structurer(make=False).structure(fields, question_type.answer)
    except RequestError as error:
        raise Mismatch(f"expected {what}: {error}; found {brief(answer)}") from None
    probabilities = fields.get("probabilities")
    if question_type.name == "noul":
        probabilities = {"yes": fields["noul"], "no": 1 - fields["noul"]}
    if isinstance(probabilities, dict) and all(type(p) in (int, float) for p in probabilities.values()):
        outside = any(not -TOLERANCE <= p <= 1 + TOLERANCE for p in probabilities.values())
        if outside or abs(math.fsum(probabilities.values()) - 1) > TOLERANCE:
            raise Mismatch(f"expected probabilities from 0 to 1 that sum to 1, found {brief(probabilities)}")


async def key(examination: Examination) -> None:
    """Where a key was given, the server refuses calls without it."""
    if examination.server.key is None:
        return
    call = await examination.server.call("GET", "/v1/limits", keyed=False)
    if call.status == 200:  # noqa: PLR2004 - HTTP's own number
        examination.notes.append("the server answers without the key that was given: it has no OPENJEV_API_KEY")
        return
    call.json(401)


async def together(examination: Examination) -> None:
    """Three questions in one request, under ids that are any text."""
    await examination.evaluate(MESSAGE, {"wants money?": NOUL, "team": CHOICE, "긴급도 🚨": SCORE})


async def transcript(examination: Examination) -> None:
    """A chat of plain turns, which every chat template takes."""
    await examination.ask(chat("Where are my invoices?", "Under Documents.", "Thanks. How do I cancel?"), CANCELS)


async def most_answers(examination: Examination) -> None:
    """A question with as many options as ``/v1/limits`` allows."""
    count = await examination.limit("max_answers_per_question")
    criteria = {f"n{number}": str(number) for number in range(count)}
    question = {"type": "choice", "instructions": "Which number is named?", "criteria": criteria}
    await examination.ask("The number is 1.", question)


def examples_check(question_type: QuestionType[Any, Any], examples: list[Question]) -> Check:
    """The check that asks a type's examples, in one request where the limits allow it."""

    async def run(examination: Examination) -> None:
        step = await examination.limit("max_questions")
        for first in range(0, len(examples), step):
            batch = {f"example {i}": q for i, q in enumerate(examples[first : first + step], first + 1)}
            try:
                await examination.evaluate(MESSAGE, batch)
            except Mismatch as error:
                if b"unknown_type" in examination.server.calls[-1].body:
                    raise Mismatch(
                        f"the server has no question type {question_type.name!r}, which is installed here: install its "
                        "plugin there, or leave it out with OPENJEV_DISABLE_PLUGINS"
                    ) from error
                raise

    return Check(f"plugin: {question_type.name}", run)


def contract_checks(registry: Registry) -> tuple[Check, ...]:
    """The checks that hold for any model, good or not."""
    converter = QuestionConverter(registry)
    types = [question_type for question_type in registry.types.values() if question_type.examples]
    return (
        Check("key", key),
        Check("three types in one request", together),
        Check("state: chat transcript", transcript),
        Check("as many answers as allowed", most_answers),
        *(examples_check(t, [converter.wire_question(t, example) for example in t.examples]) for t in types),
    )


def chat(*turns: str) -> list[dict[str, str]]:
    """A transcript that begins with the user."""
    return [{"role": ("user", "assistant")[i % 2], "content": turn} for i, turn in enumerate(turns)]


def higher(name: str, question: Question, high: Any, low: Any) -> Check:
    """The answer's number is clearly higher for one state than for another."""

    async def run(examination: Examination) -> None:
        field = question["type"]
        upper = (await examination.ask(high, question))[field]
        lower = (await examination.ask(low, question))[field]
        if not upper >= lower + MARGIN:
            raise Mismatch(
                f"expected the {field} to be at least {MARGIN} higher for the first state than for the second, found "
                f"{upper:.4f} and {lower:.4f}"
            )

    return Check(f"sense: {name}", run)


async def outage(examination: Examination) -> None:
    """The right option is chosen, wherever it stands."""
    for order in (list(TEAMS), list(TEAMS)[::-1]):
        answer = await examination.ask(OUTAGE, {**CHOICE, "criteria": {name: TEAMS[name] for name in order}})
        if answer["choice"] != "technical":
            raise Mismatch(f"expected 'technical' of {order}, found {answer['choice']!r}")


SENSE: tuple[Check, ...] = (
    higher("a refund request is more of one than a thank-you", NOUL, MESSAGE, THANKS),
    Check("sense: an outage goes to the technical team", outage),
    higher("fury scores higher than thanks", SCORE, FURIOUS, THANKS),
    higher(
        "a transcript is read to its end",
        CANCELS,
        chat("Hello, I have a question.", "Of course, what is it?", "I want to cancel my contract at once."),
        chat("Hello, I have a question.", "Of course, what is it?", "At what time do you open on Sunday?"),
    ),
    higher(
        "a field of a structured state is read",
        ARRIVED,
        {"order": {"id": 7421, "status": "delivered to the customer", "paid": True}},
        {"order": {"id": 7421, "status": "lost in transit", "paid": True}},
    ),
)
"""What any model worth deploying gets right, and a demo model does not."""


def cost_of(calls: list[Call]) -> dict[str, Any]:
    """What the last evaluation among some calls cost, as far as the server says; empty without one."""
    call = next((call for call in reversed(calls) if call.path == PATH and call.status is not None), None)
    if call is None:
        return {}
    try:
        usage = call.json(200)["usage"]
        return {
            "latency_seconds": round(call.seconds, 4),
            "prefix_tokens": call.count("x-openjev-prefix-tokens"),
            "cached_tokens": call.count("x-openjev-cached-tokens"),
            "input_tokens": usage["input_tokens"],
            "output_tokens": usage["output_tokens"],
        }
    except (Mismatch, KeyError, TypeError):
        return {}
