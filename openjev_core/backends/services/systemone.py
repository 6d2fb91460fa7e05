"""``POST /v1/systemone``, as its client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openjev_core.backends.services.asked import AskedReadout
from openjev_core.backends.services.wire import Answered, count, label_mass, member
from openjev_core.errors import BackendError
from openjev_core.reader import OrderReading


class SystemOne:
    """The wire of the System One API."""

    name = "systemone"
    path = "v1/systemone"
    max_questions = 64

    def body(self, model: str, state: Any, asked: Sequence[AskedReadout]) -> dict[str, Any]:
        """See :class:`openjev_core.backends.services.wire.Wire`."""
        return {"model": model, "state": state, "questions": {f"q{n}": one.body for n, one in enumerate(asked)}}

    def answered(self, reply: dict[str, Any], asked: Sequence[AskedReadout], service: str) -> Answered:
        """See :class:`openjev_core.backends.services.wire.Wire`."""
        answers = member(reply, "answers", dict, service)
        expected = [f"q{number}" for number in range(len(asked))]
        if set(answers) != set(expected):
            shown = ", ".join(map(repr, answers))[:100] or "none"
            raise BackendError(f"{service} was asked {', '.join(expected)[:100]} and answered {shown}")
        usage = member(reply, "usage", dict, service)
        return Answered(
            model=member(reply, "model", str, service),
            readings=[reading(one, answers[name], service) for name, one in zip(expected, asked, strict=True)],
            input_tokens=count(usage, "input_tokens", service),
            output_tokens=count(usage, "output_tokens", service),
            cached_tokens=None,
        )


def reading(asked: AskedReadout, answer: Any, service: str) -> OrderReading:
    """What one answer says.

    Raises:
        BackendError: It is no answer to this question.
    """
    if member(answer, "type", str, service) != asked.kind:
        raise BackendError(f"{service} was asked a {asked.kind} and answered a {answer['type'][:40]!r}")
    if asked.kind == "noul":
        yes = member(answer, "noul", (int, float), service)
        shown = [yes, 1 - yes]
    else:
        names = list(asked.criteria) if asked.kind == "choice" else [str(n) for n in range(len(asked.criteria))]
        probabilities = member(answer, "probabilities", dict, service)
        if set(probabilities) != set(names):
            found = ", ".join(map(repr, probabilities))[:100] or "none"
            raise BackendError(
                f"{service} was asked for {len(names)} options, {', '.join(map(repr, names))[:100]}, and answered "
                f"{len(probabilities)}: {found}"
            )
        shown = [probabilities[name] for name in names]
    return OrderReading(asked.logprobs(shown, service), label_mass(answer, service))
