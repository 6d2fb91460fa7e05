"""The OpenAPI document, with the question and answer types of the installed plugins."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from openjev_core.api.openapi_decisions import DECISION_SCHEMAS, decisions
from openjev_core.api.openapi_examples import (
    SERVER,
    example_errors,
    example_evaluation,
    example_request,
    with_example,
)
from openjev_core.api.openapi_parts import HEADERS, RESPONSES, SCHEMAS, error, ok
from openjev_core.plugins.registry import Registry
from openjev_core.plugins.schemas import components
from openjev_core.wires.request_schema import request_schema

EVALUATION_HEADERS = (
    "x-openjev-model",
    "x-openjev-prefix-tokens",
    "x-openjev-cached-tokens",
    "Server-Timing",
)

QUESTIONS_TAG = "Questions"
SERVER_TAG = "Server"

BODY_ERRORS = ("400", "408", "413", "415", "422")


def openapi_document(registry: Registry) -> dict[str, Any]:
    """The API as an OpenAPI 3.1 document. Needs no model.

    Args:
        registry: Whose question types it describes.
    """
    errors = example_errors("/v1/systemone")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "openjev",
            "version": version("openjev"),
            "description": (
                "Typed questions about a state, answered with probabilities read from a language model's first output "
                "token. Probabilities are conditioned on the options given, depend on the prompt and on the order of "
                "the options, and are not calibrated."
            ),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "."}],  # relative to the document: below a path as well
        "paths": {
            "/v1/systemone": {"post": systemone(registry)},
            "/v1/decisions": {"post": decisions()},
            "/v1/prompts": {"post": prompts(registry)},
            "/v1/models": {
                "get": server_operation("listModels", "Which model is served, and under which names", "Models")
            },
            "/v1/models/{id}": {"get": model()},
            "/v1/limits": {"get": server_operation("getLimits", "The limits in force", "Limits")},
            "/health": {"get": health()},
            "/health/live": {"get": server_operation("getLiveness", "Whether the process serves", "Live", keyed=False)},
            "/metrics": {"get": metrics()},
        },
        "tags": [
            {"name": QUESTIONS_TAG, "description": "Typed questions about a state."},
            {"name": SERVER_TAG, "description": "What the server says about itself."},
        ],
        "components": {
            "schemas": {**components(registry.types), **SCHEMAS, **DECISION_SCHEMAS, "Request": request_schema()},
            "headers": HEADERS,
            "responses": {
                status: with_example(response, errors[status]) if status in errors else response
                for status, response in RESPONSES.items()
            },
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "Needed where the server has a key."}
            },
        },
    }


def systemone(registry: Registry) -> dict[str, Any]:
    """The evaluating operation."""
    answered = with_example(
        ok("Evaluation", "An answer per question, in request order.", EVALUATION_HEADERS), example_evaluation(registry)
    )
    failures = ("401", *BODY_ERRORS, "431", "500", "502", "503", "504", "529")
    return {
        "operationId": "evaluate",
        "tags": [QUESTIONS_TAG],
        "summary": "Answer typed questions about one state",
        "security": [{}, {"key": []}],
        "requestBody": request_body(registry),
        "responses": {"200": answered, **{status: error(status) for status in failures}},
    }


def prompts(registry: Registry) -> dict[str, Any]:
    """The debugging operation."""
    failures = ("401", "404", *BODY_ERRORS, "431", "500", "503", "504", "529")
    return {
        "operationId": "previewPrompts",
        "tags": [QUESTIONS_TAG],
        "summary": "Show the prompts of a request, without inference",
        "description": "For people debugging. Served on loopback addresses only, unless configured otherwise.",
        "security": [{}, {"key": []}],
        "requestBody": request_body(registry),
        "responses": {
            "200": ok("Prompts", "The rendered prompts and their tokens."),
            **{status: error(status) for status in failures},
        },
    }


def request_body(registry: Registry) -> dict[str, Any]:
    """The body that both operations take, with an example of every installed type that has one."""
    return {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/Request"},
                "example": example_request(registry),
            }
        },
    }


def server_operation(operation: str, summary: str, schema: str, *, keyed: bool = True) -> dict[str, Any]:
    """An operation that takes nothing and says something about the server."""
    answered = ok(schema, summary)
    if schema in SERVER:
        answered = with_example(answered, SERVER[schema])
    failures = ("400", "401", "431") if keyed else ("400", "431")
    return {
        "operationId": operation,
        "tags": [SERVER_TAG],
        "summary": summary,
        "security": [{}, {"key": []}] if keyed else [],
        "responses": {"200": answered, **{status: error(status) for status in failures}},
    }


def model() -> dict[str, Any]:
    """``GET /v1/models/{id}``."""
    operation = server_operation("getModel", "One model by its name", "Model")
    operation["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    operation["responses"]["404"] = error("404")
    return operation


def health() -> dict[str, Any]:
    """``GET /health``."""
    operation = server_operation("getHealth", "Whether the backend answers", "Health", keyed=False)
    unavailable = ok("Health", "The backend does not answer.", ("Retry-After",))
    operation["responses"]["503"] = unavailable
    return operation


def metrics() -> dict[str, Any]:
    """``GET /metrics``."""
    operation = server_operation("getMetrics", "Metrics as Prometheus reads them", "Models")
    operation["responses"]["200"]["content"] = {"text/plain": {"schema": {"type": "string"}}}
    return operation
