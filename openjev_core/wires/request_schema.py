"""The JSON schema of a request: the body of ``POST /v1/systemone``, and the arguments of MCP's tools."""

from __future__ import annotations

from typing import Any

ANY_ARRAY = {"type": "array", "items": {}}


def request_schema() -> dict[str, Any]:
    """A request's schema. The question types stand beside it as components."""
    return {
        "type": "object",
        "required": ["model", "state", "questions"],
        "properties": {
            "model": {
                "type": "string",
                "description": "The served name, `jev-latest`, or any `jev-...` version: this server's one model.",
            },
            "state": {
                "anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": True}, ANY_ARRAY],
                "description": (
                    "What is judged: text, JSON, or a chat (a non-empty array of messages, or an object whose one key "
                    "`messages` holds it)."
                ),
            },
            "questions": {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"minLength": 1},
                "additionalProperties": {"$ref": "#/components/schemas/Question"},
                "description": "Question id to question. Ids never reach the model.",
            },
            "x_orders": {
                "oneOf": [
                    {"type": "integer", "minimum": 1},
                    {"type": "string", "const": "full"},
                    {"type": "null"},
                ],
                "description": "Orders of its options to read each readout in; the server's setting if absent.",
            },
            "x_partial": {
                "type": ["boolean", "null"],
                "description": "Answer the other questions when a question type fails on one.",
            },
            "x_detail": {
                "type": ["boolean", "null"],
                "description": (
                    "Answers get `x_detail`: for each readout its `options`, their `probabilities`, and under `orders` "
                    "for each order that was read the positions of the options as they were shown (`order`), and for "
                    "each option the label that it stood under (`labels`) and what it got (`probabilities`)."
                ),
            },
        },
        "description": "Unknown fields are ignored here, and refused inside a question.",
    }
