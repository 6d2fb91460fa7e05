"""The checks that hold for any model, good or not: the wire contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from attrs import frozen

from openjev_core.smoke.examination import LIMITS, Examination
from openjev_core.smoke.expectations import expect, json_of, object_with

WRONG_KEY = "openjev-smoke-wrong-key"

STATE = "Hi, I was charged twice for my March invoice and I would like the second payment back, please."
NOUL = {"type": "noul", "instructions": "Is the customer asking for money back?"}
CHOICE = {
    "type": "choice",
    "instructions": "Which team should handle this message?",
    "criteria": {"billing": "Payments, invoices, refunds", "technical": "Bugs and outages", "개인정보": None},
}
SCORE = {
    "type": "score",
    "instructions": "How urgent is this message?",
    "criteria": ["Can wait for weeks", "Should be answered this week", {"within": "the hour"}],
}
# Plain turns of text, which every chat template takes: some have no system role, some take no parts.
TRANSCRIPT = [
    {"role": "user", "content": "Where do I find my invoices?"},
    {"role": "assistant", "content": "In your account, under Documents."},
    {"role": "user", "content": "Thanks. And how do I cancel my contract?"},
]
STRUCTURED = {"order": {"id": 7421, "status": "lost in transit", "paid": True, "items": ["kettle", None, 2.5]}}


@frozen
class Check:
    """One check.

    Attributes:
        name: For people and for the report.
        run: Raises ``Mismatch`` where the server does not do what is expected.
    """

    name: str
    run: Callable[[Examination], Awaitable[None]]


async def limits(examination: Examination) -> None:
    """``/v1/limits`` names every limit."""
    await examination.limit(LIMITS[0])


async def models(examination: Examination) -> None:
    """``/v1/models`` lists the served model, in both shapes."""
    reply = object_with(await examination.get("/v1/models"), "the reply", required=("models", "object", "data"))
    for listed, key in (("models", "name"), ("data", "id")):
        expect(isinstance(reply[listed], list), f"{listed} to be an array", reply[listed])
        names = [entry.get(key) if isinstance(entry, dict) else entry for entry in reply[listed]]
        for name in ("jev-latest", examination.model):
            expect(name in names, f"{listed} to list {name}", names)


async def key_needed(examination: Examination) -> None:
    """Where a key was given, the server takes no other."""
    service = examination.service
    if service.key is None:
        return
    call = await service.call("GET", "/v1/limits", keyed=False)
    examination.calls.append(call)
    if call.status == 200 and call.fault is None:  # noqa: PLR2004 - HTTP's own number
        examination.notes.append("the server answers without the key that was given: it has no OPENJEV_API_KEY")
        return
    object_with(json_of(call, 401), "the refusal", required=("detail",))


async def noul(examination: Examination) -> None:
    """A noul."""
    await examination.ask(STATE, NOUL)


async def choice(examination: Examination) -> None:
    """A choice, with a name that is not ASCII and has no description."""
    await examination.ask(STATE, CHOICE)


async def score(examination: Examination) -> None:
    """A score, with a level that is an object."""
    await examination.ask(STATE, SCORE)


async def together(examination: Examination) -> None:
    """All three in one request, under ids that are any text."""
    await examination.evaluate(STATE, {"wants money?": NOUL, "team": CHOICE, "긴급도 🚨": SCORE})


async def transcript(examination: Examination) -> None:
    """A chat, as an array of messages."""
    await examination.ask(TRANSCRIPT, {"type": "noul", "instructions": "Does the user want to cancel the contract?"})


async def transcript_in_object(examination: Examination) -> None:
    """A chat, under ``messages``."""
    state = {"messages": TRANSCRIPT}
    await examination.ask(state, {"type": "noul", "instructions": "Does the user want to cancel the contract?"})


async def structured(examination: Examination) -> None:
    """A state that is an object."""
    await examination.ask(STRUCTURED, {"type": "noul", "instructions": "Has the order arrived?"})


def numbered(count: int) -> dict[str, Any]:
    """A choice with ``count`` options."""
    criteria = {f"n{number}": str(number) for number in range(count)}
    return {"type": "choice", "instructions": "Which number is named?", "criteria": criteria}


async def most_answers(examination: Examination) -> None:
    """A question with as many answers as ``/v1/limits`` allows."""
    await examination.ask("The number is 1.", numbered(await examination.limit("max_answers_per_question")))


async def too_many_answers(examination: Examination) -> None:
    """A question with one answer more is refused, with its place."""
    count = await examination.limit("max_answers_per_question") + 1
    questions = {"q": numbered(count)}
    call = await examination.post({"model": "jev-latest", "state": "The number is 1.", "questions": questions})
    check_refusal(json_of(call, 422), ["body", "questions", "q"])


def check_refusal(refusal: Any, beginning: list[str]) -> None:
    """A refused request says what is wrong and where."""
    detail = object_with(refusal, "the refusal", required=("detail",))["detail"]
    expect(isinstance(detail, list) and bool(detail), "detail to be a non-empty array", detail)
    for problem in detail:
        fields = object_with(problem, "a problem", required=("loc", "msg", "type"))
        expect(isinstance(fields["loc"], list), "loc to be an array", fields["loc"])
        expect(fields["loc"][: len(beginning)] == beginning, f"loc to begin with {beginning}", fields["loc"])
        expect(isinstance(fields["msg"], str) and bool(fields["msg"]), "msg to say something", fields["msg"])


async def unknown_type(examination: Examination) -> None:
    """A question of a type that does not exist is refused, with its place."""
    questions = {"q": {"type": "openjev-smoke-no-such-type"}}
    call = await examination.post({"model": "jev-latest", "state": STATE, "questions": questions})
    check_refusal(json_of(call, 422), ["body", "questions", "q"])


CONTRACT: tuple[Check, ...] = (
    Check("limits", limits),
    Check("models", models),
    Check("key", key_needed),
    Check("noul", noul),
    Check("choice", choice),
    Check("score", score),
    Check("three types in one request", together),
    Check("state: chat transcript", transcript),
    Check("state: chat under messages", transcript_in_object),
    Check("state: structured", structured),
    Check("as many answers as allowed", most_answers),
    Check("one answer too many is refused", too_many_answers),
    Check("an unknown question type is refused", unknown_type),
)
