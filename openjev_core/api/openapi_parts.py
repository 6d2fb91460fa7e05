"""Parts of the OpenAPI document that do not depend on the plugins."""

from __future__ import annotations

from typing import Any

import attrs

from openjev_core.limits import Limits

REQUEST_IDS = ("x-typesafe-request-id", "x-request-id")
"""The headers of every response."""


def obj(properties: dict[str, Any], description: str = "") -> dict[str, Any]:
    """The schema of an object whose properties are all required."""
    schema: dict[str, Any] = {"type": "object", "required": [*properties], "properties": properties}
    if description:
        schema["description"] = description
    return schema


def ref(kind: str, name: str) -> dict[str, str]:
    """A reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}


def ok(schema: str, description: str, headers: tuple[str, ...] = ()) -> dict[str, Any]:
    """A response with a JSON body."""
    return {
        "description": description,
        "headers": {name: ref("headers", name) for name in (*REQUEST_IDS, *headers)},
        "content": {"application/json": {"schema": ref("schemas", schema)}},
    }


def error(status: str) -> dict[str, str]:
    """A reference to an error's response."""
    return ref("responses", status)


TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
TYPESAFE_MODEL = {"name": TEXT, "description": TEXT, "release_date": TEXT}
OPENAI_MODEL = {"id": TEXT, "object": {"type": "string", "const": "model"}, "owned_by": TEXT}
ERROR_OBJECT = obj(
    {
        "message": TEXT,
        "type": TEXT,
        "param": {"type": ["string", "null"], "description": "Where, as a path in the body."},
        "code": TEXT,
    },
    "The same error as clients of OpenAI's API read it.",
)
TOKEN = obj({"id": COUNT, "text": TEXT})

HEADERS: dict[str, Any] = {
    "x-typesafe-request-id": {
        "description": "The request's id: its own `x-request-id` where that is sane. On every response.",
        "schema": TEXT,
        "required": True,
    },
    "x-request-id": {"description": "The same id.", "schema": TEXT, "required": True},
    "x-openjev-model": {"description": "Public name of the model that answered.", "schema": TEXT},
    "x-openjev-prefix-tokens": {"description": "Length of the prefix that the branches share.", "schema": COUNT},
    "x-openjev-cached-tokens": {
        "description": "The branches' cached prompt tokens; absent when the backend does not report them.",
        "schema": COUNT,
    },
    "Server-Timing": {
        "description": "Milliseconds spent in `queue`, `prepare`, `prefill` and `branches`.",
        "schema": TEXT,
    },
    "retry-after-ms": {"description": "The same in milliseconds.", "schema": COUNT},
    "Retry-After": {"description": "Seconds after which to try again.", "schema": COUNT},
    "WWW-Authenticate": {"description": "`Bearer`.", "schema": TEXT},
}

SCHEMAS: dict[str, Any] = {
    "Evaluation": obj(
        {
            "model": {**TEXT, "description": "Public name of the model that answered."},
            "answers": {"type": "object", "additionalProperties": ref("schemas", "Answer")},
            "usage": ref("schemas", "Usage"),
        }
    ),
    "Usage": {
        **obj(
            {"input_tokens": COUNT, "output_tokens": COUNT},
            "The backend's own counts, warm-up and every branch, cached tokens included; no bill.",
        ),
        "properties": {
            "input_tokens": COUNT,
            "output_tokens": COUNT,
            "cached_tokens": {**COUNT, "description": "Of the input tokens; absent when the backend does not say."},
        },
    },
    "Models": obj(
        {
            "models": {"type": "array", "items": obj(TYPESAFE_MODEL)},
            "object": {"type": "string", "const": "list"},
            "data": {"type": "array", "items": obj(OPENAI_MODEL)},
        },
        "TypeSafe's and OpenAI's shape in one.",
    ),
    "Model": obj({**OPENAI_MODEL, **TYPESAFE_MODEL}, "TypeSafe's and OpenAI's shape in one."),
    "Limits": {
        **obj(limits := {field.name: {"type": "integer", "minimum": 1} for field in attrs.fields(Limits)}),
        "properties": {
            **limits,
            "accepted_answers": {
                **obj({"share": {"type": "number"}, "confidence": {"type": "number"}}),
                "description": "Only where the calibration has a promise: of the answers with `x_accept`, this share "
                "is right, with this confidence for each question.",
            },
        },
    },
    "Health": {
        **obj(
            {
                "status": {"enum": ["ok", "unavailable"]},
                "startup_seconds": {"type": "number"},
                "model": TEXT,
                "backend": obj({"name": TEXT, "status": {"enum": ["ok", "unavailable"]}}),
            }
        ),
    },
    "Live": obj({"status": {"const": "ok"}}),
    "Prompts": obj(
        {
            "prefix": TEXT,
            "prefix_tokens": {"type": "array", "items": TOKEN},
            "branches": {
                "type": "array",
                "items": obj(
                    {
                        "question_id": TEXT,
                        "readout": COUNT,
                        "labels": {"type": "object", "additionalProperties": TEXT},
                        "prompt": TEXT,
                        "tokens": {"type": "array", "items": TOKEN},
                    }
                ),
            },
            "asks_on": {
                "type": "array",
                "items": TEXT,
                "description": "Questions that ask on once these branches are read; what, depends on what is read.",
            },
        }
    ),
    "Error": obj({"detail": obj({"error_type": TEXT, "message": TEXT}), "error": ERROR_OBJECT}),
    "ValidationError": obj(
        {
            "detail": {
                "type": "array",
                "minItems": 1,
                "items": obj(
                    {
                        "loc": {
                            "type": "array",
                            "minItems": 1,
                            "description": "Where, as a path that starts with `body`.",
                            "items": {"type": ["string", "integer"]},
                        },
                        "msg": TEXT,
                        "type": TEXT,
                    }
                ),
            },
            "error": ERROR_OBJECT,
        }
    ),
}

ERRORS = {
    "400": "A body that does not decompress, or that has two lengths. Malformed HTTP gets the status alone.",
    "401": "A missing or wrong key.",
    "404": "No such route here.",
    "408": "The body did not arrive in time.",
    "413": "The body is over the limit, counted after decompression.",
    "415": "A content coding other than zstd, gzip, deflate or identity, or a multipart body.",
    "422": "The request is wrong. Nothing was inferred.",
    "431": "The request line and headers are over the limit. This status comes alone, without an id.",
    "500": "A question type broke its contract.",
    "502": "The backend answered with something that is no distribution.",
    "503": "The backend does not answer, the server stops, or it receives too many bodies at once.",
    "504": "The evaluation ran out of time.",
    "529": "As many evaluations are running as are admitted. `Retry-After` says what recent ones took.",
}


def waiting_headers(status: str) -> tuple[str, ...]:
    """The headers of an error that say what to do about it."""
    if status == "401":
        return ("WWW-Authenticate",)
    return ("Retry-After", "retry-after-ms") if status in ("429", "503", "529") else ()


def response(status: str, description: str) -> dict[str, Any]:
    """An error's response."""
    if status == "431":
        return {"description": description}
    schema = "ValidationError" if status == "422" else "Error"
    return ok(schema, description, waiting_headers(status))


RESPONSES: dict[str, Any] = {status: response(status, description) for status, description in ERRORS.items()}
