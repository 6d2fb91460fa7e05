"""A request of systemone as one of OpenAI's ``/v1/decisions``, and the answers back: for servers of that wire.

It has predicates, choices and scores. What it has no place for is refused before anything is sent, never dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from openjev_core.decisions_input import input_of
from openjev_core.errors import Problem, RequestError
from openjev_core.json_document import compact
from openjev_core.plugins.problems import mismatch

INSTRUCTIONS = {
    "choice": "Which choice describes the input best?",
    "score": "Which level describes the input best?",
}
"""What is asked where a question of this type has no instructions, which this wire requires."""


def decisions_request(document: Mapping[str, Any], model: str) -> dict[str, Any]:
    """A request of systemone as one of this wire. Extensions, whose names begin with ``x_``, stay as they are.

    Raises:
        RequestError: A question is of a type that this wire does not have, or something is not of its form.
    """
    asked = document.get("questions")
    if not isinstance(asked, dict) or "state" not in document:
        raise RequestError.at((), "expected a request with a state and an object of questions")
    if not isinstance(document["state"], (str, dict, list)):
        raise mismatch("a string, an object or an array", document["state"]).under("state")
    questions: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for question_id, question in asked.items():
        try:
            questions.append({**decisions_question(question), "name": question_id})
        except RequestError as error:
            problems.extend(error.under("questions", question_id).problems)
    if problems:
        raise RequestError(problems)
    more = {name: value for name, value in document.items() if name.startswith("x_")}
    return {"model": model, "input": input_of(document["state"]), "questions": questions, **more}


def decisions_question(question: Any) -> dict[str, Any]:
    """A question as one of this wire.

    Raises:
        RequestError: This wire has none of its type, or it is not of its type's form. Paths start at the question.
    """
    if not isinstance(question, dict):
        raise RequestError.at((), "expected an object with a type")
    kind, criteria = question.get("type"), question.get("criteria")
    asked = question.get("instructions")
    text = asked if isinstance(asked, str) or asked is None else compact(asked)
    if kind == "noul":
        return {"type": "predicate", "instructions": predicate_text(text, criteria)}
    if kind == "choice" and isinstance(criteria, dict):
        choices = [
            {"value": name} if described is None else {"value": name, "description": content_of(described)}
            for name, described in criteria.items()
        ]
        return {"type": "choice", "instructions": text or INSTRUCTIONS["choice"], "choices": choices}
    if kind == "score" and isinstance(criteria, list):
        levels = [{"label": content_of(level)} for level in criteria]
        return {"type": "score", "instructions": text or INSTRUCTIONS["score"], "levels": levels}
    if kind in INSTRUCTIONS:
        raise RequestError.at(("criteria",), "expected the options of the question")
    msg = f"a server of /v1/decisions is asked questions of the types noul, choice and score, not {str(kind)[:40]!r}"
    raise RequestError.at(("type",), msg, "unknown_type")


def predicate_text(instructions: str | None, criteria: Any) -> str:
    """A noul's instructions, with what counts as a yes and a no in words: a predicate has no criteria of its own."""
    lines = [instructions or "Which outcome describes the input?"]
    for name, told in (("true", "It is true when: "), ("false", "It is false when: ")):
        if isinstance(criteria, dict) and criteria.get(name) is not None:
            lines.append(told + content_of(criteria[name]))
    return "\n".join(lines)


def content_of(content: Any) -> str:
    """A text field as text."""
    return content if isinstance(content, str) else compact(content)


def names_of(questions: Sequence[Mapping[str, Any]]) -> list[str]:
    """An id for each question of this wire: its name, or its number where it has none or shares it."""
    names = [question.get("name") for question in questions]
    return [
        str(number) if not name or names.count(name) > 1 else str(name) for number, name in enumerate(names, start=1)
    ]


def systemone_answers(names: Sequence[str], answers: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """This wire's answers in systemone's shape, under their questions' ids.

    Raises:
        LookupError, TypeError, ValueError: They are no answers of this wire, or not one for each question.
    """
    return {name: systemone_answer(answer) for name, answer in zip(names, answers, strict=True)}


def systemone_answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """One answer. A refusal is that of a question whose type failed."""
    kind = answer["type"]
    more = {name: value for name, value in answer.items() if name.startswith("x_")}
    if kind == "predicate":
        return {"type": "noul", "noul": answer["probability"], **more}
    if kind == "refusal":
        return {"type": "refusal", "x_error": {"message": "the server refused this question"}, **more}
    read = answer["probabilities"]
    name: Callable[[Any], str] = content_of
    if len({name(one["value"]) for one in read}) < len(read):  # the boolean and the word are two values
        name = compact
    probabilities = {name(one["value"]): one["probability"] for one in read}
    if kind == "choice":
        found: dict[str, Any] = {"type": "choice", "choice": name(answer["choice"])}
    else:
        found = {
            "type": "score",
            "score": answer["score"],
            "legend": {name(one["value"]): one["label"] for one in read},
        }
    return {**found, "probabilities": probabilities, "confidence": answer["confidence"], **more}
