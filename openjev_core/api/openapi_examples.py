"""Examples of the OpenAPI document: requests with every installed type, and what the server answers."""

from __future__ import annotations

import json
from typing import Any

from openjev_core.api.responses import error_response
from openjev_core.asking import asked_of
from openjev_core.distribution import confidence
from openjev_core.errors import (
    AtCapacity,
    BackendError,
    BackendUnavailable,
    BodyTimeout,
    BodyTooLarge,
    DeadlineExceeded,
    MalformedBody,
    NotFound,
    OpenJevError,
    PluginError,
    RequestError,
    Unauthorized,
    UnsupportedBody,
)
from openjev_core.plugins.registry import Registry
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.question import Distribution, QuestionType, Readout

STATE = (
    "Hi, I was charged twice for my March invoice and the refund I was promised last week still has not arrived. "
    "Please fix this today."
)

MODEL = "Qwen/Qwen3.6-35B-A3B"
USAGE = {"input_tokens": 1180, "output_tokens": 4, "cached_tokens": 870}

MOST_READOUTS = 64
"""Readouts of an example; a type that asks for more has no answer in the document."""

FIRST = 0.75
"""Probability of an example's first option; the others share the rest."""

ERRORS: tuple[OpenJevError, ...] = (
    MalformedBody("the body is not valid gzip"),
    Unauthorized("this server needs a key: send the header `Authorization: Bearer <key>`"),
    NotFound("there is no route '/v1/other'; GET / lists them"),
    RequestError.at(("model",), f"unknown model 'gpt-5'; served: {MODEL!r}, 'jev-latest', 'jev-...'", "unknown_model"),
    BodyTimeout("the body did not arrive within 20 seconds"),
    BodyTooLarge("the body is larger than 2097152 bytes (max_body_bytes)"),
    UnsupportedBody("the content encoding 'br' is not read; accepted: zstd, gzip, deflate, identity"),
    RequestError.at(("questions", "refund", "instructions"), "missing; this field is required", "missing"),
    PluginError("ranking", "reduce raised ValueError"),
    BackendError("the backend returned a label logprob that is not a number"),
    BackendUnavailable("the backend does not answer"),
    DeadlineExceeded("the evaluation took longer than request_timeout (120 s) and was stopped"),
    AtCapacity("16 evaluations are running, which is the limit; send the request again", 2.0),
)


def example_request(registry: Registry) -> dict[str, Any]:
    """A request with the first example of each installed type."""
    converter = QuestionConverter(registry)
    questions = {
        name: converter.wire_question(question_type, question_type.examples[0])
        for name, question_type in registry.types.items()
        if question_type.examples
    }
    return {"model": "jev-latest", "state": STATE, "questions": questions}


def example_evaluation(registry: Registry) -> dict[str, Any]:
    """What that request is answered, by the types' own reducers; without those that fail on their example."""
    converter = QuestionConverter(registry)
    answers = {}
    for name, question_type in registry.types.items():
        if question_type.examples and (answer := example_answer(converter, question_type)) is not None:
            answers[name] = answer
    return {"model": MODEL, "answers": answers, "usage": USAGE}


def example_answer(converter: QuestionConverter, question_type: QuestionType[Any, Any]) -> dict[str, Any] | None:
    """The answer to a type's first example; ``None`` where the type fails on it."""
    example = question_type.examples[0]
    try:
        read = list(asked_of(question_type, example, distribution_of, MOST_READOUTS + 1))
        if len(read) > MOST_READOUTS:
            return None
        return converter.answer(question_type, question_type.reduce(example, read))
    except Exception:  # noqa: BLE001 - a third party's code; its questions say what is wrong with it
        return None


def distribution_of(readout: Readout, _position: int) -> Distribution:
    """A distribution that is fairly sure of the first option."""
    count = len(readout.options)
    if count == 1:
        return Distribution(readout, (1.0,), 1.0)
    probabilities = (FIRST, *[(1 - FIRST) / (count - 1)] * (count - 1))
    return Distribution(readout, probabilities, confidence(probabilities, formula="entropy", ordered=readout.ordered))


def example_errors(path: str) -> dict[str, Any]:
    """Status to the body of an error of a path, as the server writes it."""
    replies = [error_response(error, "req_0123456789abcdef0123456789abcdef", path) for error in ERRORS]
    return {str(reply.status_code): json.loads(bytes(reply.body)) for reply in replies}


def with_example(response: dict[str, Any], body: Any) -> dict[str, Any]:
    """A response of the document with an example of its body; itself where there is no body."""
    if "content" not in response:
        return response
    (media, content), *_ = response["content"].items()
    return {**response, "content": {media: {**content, "example": body}}}


SERVER: dict[str, Any] = {
    "Models": {
        "models": [{"name": MODEL, "description": f"{MODEL} on sglang", "release_date": "2026-04-14"}],
        "object": "list",
        "data": [{"id": MODEL, "object": "model", "owned_by": "openjev"}],
    },
    "Model": {
        "id": MODEL,
        "object": "model",
        "owned_by": "openjev",
        "name": MODEL,
        "description": f"{MODEL} on sglang",
        "release_date": "2026-04-14",
    },
    "Health": {
        "status": "ok",
        "startup_seconds": 41.2,
        "model": MODEL,
        "backend": {"name": "sglang", "status": "ok"},
    },
    "Live": {"status": "ok"},
}
"""What the server says about itself, by schema."""

DECISION: dict[str, Any] = {
    "model": MODEL,
    "answers": [
        {"type": "predicate", "name": "refund", "probability": 0.94},
        {
            "type": "choice",
            "name": "team",
            "choice": "billing",
            "probabilities": [{"value": "billing", "probability": 0.97}, {"value": "technical", "probability": 0.03}],
            "confidence": 0.81,
        },
        {
            "type": "score",
            "name": "anger",
            "score": 1.25,
            "probabilities": [
                {"value": 0, "label": "calm", "probability": 0.0},
                {"value": 1, "label": "annoyed", "probability": 0.75},
                {"value": 2, "label": "furious", "probability": 0.25},
            ],
            "confidence": 0.49,
        },
    ],
    "usage": {
        "input_tokens": 1180,
        "input_tokens_details": {"cached_tokens": 870, "cache_write_tokens": 0},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 1184,
    },
}
"""The answer to the example of decisions."""
