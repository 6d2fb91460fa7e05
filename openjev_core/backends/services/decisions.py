"""OpenAI's ``POST /v1/decisions``, as its client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openjev_core.backends.services.asked import AskedReadout
from openjev_core.backends.services.wire import Answered, count, label_mass, member
from openjev_core.decisions_input import input_of
from openjev_core.errors import BackendError
from openjev_core.question import content_text
from openjev_core.reader import OrderReading

KINDS = {"noul": "predicate", "choice": "choice", "score": "score"}
GENERAL = "Which option describes the material best?"
"""What is asked where a question has no instructions, which this wire requires."""


class Decisions:
    """The wire of OpenAI's decisions."""

    name = "decisions"
    path = "v1/decisions"
    max_questions = 400

    def body(self, model: str, state: Any, asked: Sequence[AskedReadout]) -> dict[str, Any]:
        """See :class:`openjev_core.backends.services.wire.Wire`."""
        questions = [question(f"q{number}", one) for number, one in enumerate(asked)]
        return {"model": model, "input": input_of(state), "questions": questions}

    def answered(self, reply: dict[str, Any], asked: Sequence[AskedReadout], service: str) -> Answered:
        """See :class:`openjev_core.backends.services.wire.Wire`."""
        answers = member(reply, "answers", list, service)
        if len(answers) != len(asked):
            raise BackendError(f"{service} was asked {len(asked)} questions and answered {len(answers)}")
        usage = member(reply, "usage", dict, service)
        details = usage.get("input_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        return Answered(
            model=member(reply, "model", str, service),
            readings=[reading(f"q{n}", *pair, service) for n, pair in enumerate(zip(asked, answers, strict=True))],
            input_tokens=count(usage, "input_tokens", service),
            output_tokens=count(usage, "output_tokens", service),
            cached_tokens=cached if type(cached) is int and cached >= 0 else None,
        )


def question(name: str, asked: AskedReadout) -> dict[str, Any]:
    """One question. A noul whose outcomes are described is a choice between true and false: predicates have none."""
    instructions = GENERAL if asked.instructions is None else content_text(asked.instructions)
    written: dict[str, Any] = {"type": kind_of(asked), "name": name, "instructions": instructions}
    if asked.kind == "noul" and asked.criteria is not None:
        described = {True: asked.criteria.get("true"), False: asked.criteria.get("false")}
        written["choices"] = [
            {"value": value, "description": "anything else" if content is None else content_text(content)}
            for value, content in described.items()
        ]
    if asked.kind == "choice":
        written["choices"] = [
            {"value": value} if content is None else {"value": value, "description": content_text(content)}
            for value, content in asked.criteria.items()
        ]
    if asked.kind == "score":
        written["levels"] = [{"label": content_text(content)} for content in asked.criteria]
    return written


def kind_of(asked: AskedReadout) -> str:
    """The type of this wire that a question travels as."""
    return "choice" if asked.kind == "noul" and asked.criteria is not None else KINDS[asked.kind]


def reading(name: str, asked: AskedReadout, answer: Any, service: str) -> OrderReading:
    """What one answer says.

    Raises:
        BackendError: It is no answer to this question.
    """
    kind = kind_of(asked)
    if (found := member(answer, "type", str, service)) != kind:
        why = "refuses to answer it" if found == "refusal" else f"answered a {found[:40]!r}"
        raise BackendError(f"{service} was asked a {kind} and {why}")
    if answer.get("name") != name:
        raise BackendError(f"{service} was asked {name!r} and answered {str(answer.get('name'))[:40]!r}")
    if kind == "predicate":
        yes = member(answer, "probability", (int, float), service)
        return OrderReading(asked.logprobs([yes, 1 - yes], service), label_mass(answer, service))
    values = {
        "noul": [True, False],
        "choice": list(asked.criteria or ()),
        "score": list(range(len(asked.criteria or ()))),
    }
    expected = values[asked.kind]
    entries = member(answer, "probabilities", list, service)
    shown = [entry.get("probability") if isinstance(entry, dict) else None for entry in entries]
    named = [entry.get("value") if isinstance(entry, dict) else None for entry in entries]
    if [(type(v), v) for v in named] != [(type(v), v) for v in expected]:
        raise BackendError(
            f"{service} was asked for {len(expected)} options, {str(expected)[:100]}, and answered {len(named)}: "
            f"{str(named)[:100]}"
        )
    return OrderReading(asked.logprobs(shown, service), label_mass(answer, service))
