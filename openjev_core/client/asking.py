"""Asking a server a request of either wire, and its answers in one shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from openjev_core.client.decisions import decisions_request, names_of, systemone_answers
from openjev_core.client.server import DECISIONS, Server, no_answer
from openjev_core.json_document import compact

ANY_MODEL = "jev-latest"
"""The model id that stands for whatever is served. A server of decisions does not know it, and is asked for its own."""


@frozen(kw_only=True)
class Answered:
    """What a server answered.

    Attributes:
        body: The response's body, as it came.
        model: The model that answered.
        answers: Question id to answer, in systemone's shape.
        usage: Input tokens, output tokens, and cached tokens where the server says.
        seconds: Duration of the attempt that succeeded.
    """

    body: Mapping[str, Any]
    model: str
    answers: Mapping[str, Mapping[str, Any]]
    usage: tuple[int, int, int | None]
    seconds: float


async def ask_server(server: Server, document: Mapping[str, Any], written: bytes | None = None) -> Answered:
    """Send a request and read its answers.

    A request with an ``input`` is one of decisions and goes there as it is. One of systemone goes as it is to a server
    of systemone, and as one of decisions to a server of decisions.

    Args:
        server: The server.
        document: The request.
        written: Its bytes, where it came as some.

    Raises:
        RequestError: The request has no form in the server's wire. Nothing was sent.
        Refused: The server refuses it.
        OpenJevError: As :meth:`Server.post` raises it.
    """
    path, names = server.path, None
    if "input" in document and "state" not in document:
        path = DECISIONS
    elif path == DECISIONS:
        model = document.get("model", ANY_MODEL)
        document = decisions_request(document, await server.first_model() if model == ANY_MODEL else model)
        written, names = None, [question["name"] for question in document["questions"]]
    body, seconds = await server.post(compact(document).encode() if written is None else written, path)
    try:
        answers = body["answers"]
        if path == DECISIONS:
            answers = systemone_answers(names_of(document["questions"]) if names is None else names, answers)
        usage = body["usage"]
        return Answered(
            body=body,
            model=str(body["model"]),
            answers={str(question_id): {"type": answer["type"], **answer} for question_id, answer in answers.items()},
            usage=(int(usage["input_tokens"]), int(usage["output_tokens"]), cached_tokens(usage)),
            seconds=seconds,
        )
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise no_answer(server.url, error) from None


def cached_tokens(usage: Mapping[str, Any]) -> int | None:
    """The cached tokens, as either wire tells them; ``None`` where it does not."""
    cached = usage.get("cached_tokens", usage.get("input_tokens_details", {}).get("cached_tokens"))
    return None if cached is None else int(cached)
