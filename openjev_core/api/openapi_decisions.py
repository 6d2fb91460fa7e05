"""The part of the OpenAPI document that describes ``POST /v1/decisions``."""

from __future__ import annotations

from typing import Any

from openjev_core.api.openapi_examples import DECISION, example_errors, with_example
from openjev_core.api.openapi_parts import COUNT, ERROR_OBJECT, ERRORS, TEXT, error, obj, ok, ref, waiting_headers

NUMBER: dict[str, Any] = {"type": "number"}
NAME: dict[str, Any] = {"type": ["string", "null"], "description": "Comes back with the answer."}
VALUE: dict[str, Any] = {"type": ["string", "boolean"]}


def kind(tag: str, required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """The schema of an object that its ``type`` names."""
    fields = {"type": {"type": "string", "const": tag}, **required}
    return {**obj(fields), "properties": {**fields, **(optional or {})}}


def listed(schema: dict[str, Any], least: int) -> dict[str, Any]:
    """The schema of an array."""
    return {"type": "array", "minItems": least, "items": schema}


PARTS = ref("schemas", "DecisionPart")
CONTENT: dict[str, Any] = {"anyOf": [TEXT, {"type": "array", "items": PARTS}]}
CALL: dict[str, Any] = {"call_id": TEXT, "name": TEXT}
OUTPUT: dict[str, Any] = {"call_id": TEXT, "output": CONTENT}
MESSAGE: dict[str, Any] = obj({"role": {"enum": ["user", "developer", "system", "assistant"]}, "content": CONTENT})
CHOICE = {**obj({"value": VALUE}), "properties": {"value": VALUE, "description": TEXT}}
LEVEL = {**obj({"label": TEXT}), "properties": {"label": TEXT, "description": TEXT}}

DECISION_SCHEMAS: dict[str, Any] = {
    "DecisionPart": {
        "oneOf": [
            kind("input_text", {"text": TEXT}),
            kind("input_json", {"data": {"description": "Any JSON value, of at most 32 levels."}}),
            kind("output_text", {"text": TEXT}),
            kind("refusal", {"refusal": TEXT}),
        ]
    },
    "DecisionItem": {
        "anyOf": [
            {**MESSAGE, "properties": {"type": {"const": "message"}, **MESSAGE["properties"]}},
            kind("function_call", {**CALL, "arguments": {**TEXT, "description": "A JSON object, as text."}}),
            kind("function_call_output", OUTPUT),
            kind("custom_tool_call", {**CALL, "input": TEXT}),
            kind("custom_tool_call_output", OUTPUT),
        ]
    },
    "DecisionQuestion": {
        "oneOf": [
            kind("predicate", {"instructions": CONTENT}, {"name": NAME}),
            kind("choice", {"instructions": CONTENT, "choices": listed(CHOICE, 2)}, {"name": NAME}),
            kind("score", {"instructions": CONTENT, "levels": listed(LEVEL, 1)}, {"name": NAME}),
        ]
    },
    "DecisionRequest": obj(
        {
            "model": {**TEXT, "description": "A served name, `jev-latest`, or any `jev-...` version."},
            "input": {"anyOf": [TEXT, listed(ref("schemas", "DecisionItem"), 1)]},
            "questions": listed(ref("schemas", "DecisionQuestion"), 1),
        },
        "OpenAI's shape. Unknown fields are ignored here, and refused inside a question.",
    ),
    "DecisionAnswer": {
        "oneOf": [
            kind("predicate", {"name": NAME, "probability": NUMBER}),
            kind(
                "choice",
                {
                    "name": NAME,
                    "choice": VALUE,
                    "probabilities": listed(obj({"value": VALUE, "probability": NUMBER}), 2),
                    "confidence": NUMBER,
                },
            ),
            kind(
                "score",
                {
                    "name": NAME,
                    "score": NUMBER,
                    "probabilities": listed(obj({"value": COUNT, "label": TEXT, "probability": NUMBER}), 2),
                    "confidence": NUMBER,
                },
            ),
            kind("refusal", {"name": NAME}),
        ]
    },
    "Decision": obj(
        {
            "model": TEXT,
            "answers": listed(ref("schemas", "DecisionAnswer"), 1),
            "usage": obj(
                {
                    "input_tokens": COUNT,
                    "input_tokens_details": obj({"cached_tokens": COUNT, "cache_write_tokens": COUNT}),
                    "output_tokens": COUNT,
                    "output_tokens_details": obj({"reasoning_tokens": COUNT}),
                    "total_tokens": COUNT,
                }
            ),
        },
        "Answers in the questions' order.",
    ),
    "OpenAIError": obj({"error": ERROR_OBJECT}),
}

FAILURES = {
    **{status: ERRORS[status] for status in ("401", "408", "413", "415", "500", "502", "503", "504")},
    "400": "The request is wrong. Nothing was inferred; `error.param` says where.",
    "404": "No such model.",
    "429": "As many evaluations are running as are admitted.",
}


def decisions() -> dict[str, Any]:
    """The operation."""
    errors = example_errors("/v1/decisions")
    headers = ("x-openjev-model", "x-openjev-prefix-tokens", "x-openjev-cached-tokens", "Server-Timing")
    example = {
        "model": "jev-latest",
        "input": "I was charged twice for my March invoice.",
        "questions": [
            {"type": "predicate", "name": "refund", "instructions": "The customer asks for money back."},
            {
                "type": "choice",
                "name": "team",
                "instructions": "Which team should handle this?",
                "choices": [{"value": "billing", "description": "Payments, invoices"}, {"value": "technical"}],
            },
            {
                "type": "score",
                "name": "anger",
                "instructions": "How angry is the customer?",
                "levels": [{"label": "calm"}, {"label": "annoyed"}, {"label": "furious"}],
            },
        ],
    }
    return {
        "operationId": "decide",
        "tags": ["Questions"],
        "summary": "Answer questions about one input, in the shape of OpenAI's decisions",
        "security": [{}, {"key": []}],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": ref("schemas", "DecisionRequest"), "example": example}},
        },
        "responses": {
            "200": with_example(ok("Decision", "An answer per question, in request order.", headers), DECISION),
            **{
                status: with_example(ok("OpenAIError", FAILURES[status], waiting_headers(status)), errors[status])
                for status in sorted(FAILURES)
            },
            "431": error("431"),
        },
    }
