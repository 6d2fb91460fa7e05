"""The tools that agents are offered: a state and a question, with schemas from the question types' own classes.

A tool's arguments become the engine's document, and a response's body becomes what the tool returns. Nothing here knows
of the protocol that carries them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from openjev_core.errors import Problem, RequestError
from openjev_core.plugins.registry import Registry
from openjev_core.plugins.schemas import components, references
from openjev_core.wires.request_schema import request_schema

MODEL = "jev-latest"

ONE = "question"
"""The id of a question that is asked alone."""

REF = "#/components/schemas/"

SINGLE = {
    "decide": ("noul", "Decide a yes/no question, or whether a statement is true, about a state."),
    "choose": ("choice", "Choose one of several named options for a state."),
    "score": ("score", "Place a state on an ordered scale of described levels, lowest level first."),
}
"""Tools for one question of one type: name to the type and what the tool does."""

STATE = "The state is what is judged: a text, JSON, or a chat."


@frozen(kw_only=True)
class Tool:
    """A tool.

    Attributes:
        name: What agents call it by.
        description: What it does, for agents.
        arguments: JSON schema of its arguments, an object's.
        result: JSON schema of what it returns, an object's.
        type_name: Question type of a tool that asks one question; ``None`` for the one that takes any.
    """

    name: str
    description: str
    arguments: dict[str, Any]
    result: dict[str, Any]
    type_name: str | None = None

    def document(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The engine's document for the arguments given.

        Raises:
            RequestError: There is an argument that the tool does not have. All else is left to the engine.
        """
        known = self.arguments["properties"]
        if unknown := [name for name in given if name not in known]:
            msg = f"unknown argument; accepted: {', '.join(known)}"
            raise RequestError([Problem((name,), msg, "extra_forbidden") for name in unknown])
        document = {"model": MODEL, **given}
        if self.type_name is not None:
            question = {name: value for name, value in given.items() if name != "state"}
            document = {"model": MODEL, "questions": {ONE: {"type": self.type_name, **question}}}
            if "state" in given:
                document["state"] = given["state"]
        return document

    def located(self, error: RequestError) -> RequestError:
        """The engine's error, with paths into the arguments."""
        if self.type_name is None:
            return error
        lead = ("questions", ONE)
        return RequestError([Problem(p.loc[2:] if p.loc[:2] == lead else p.loc, p.msg, p.type) for p in error.problems])

    def returned(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What the tool returns, of a response's body: its one answer, or all of them."""
        return dict(body if self.type_name is None else body["answers"][ONE])


def tools_of(registry: Registry) -> dict[str, Tool]:
    """The tools that the installed question types make possible, by name."""
    schemas = components(registry.types)
    of_request = request_schema()["properties"]
    tools = {}
    for name, (type_name, summary) in SINGLE.items():
        if type_name not in registry.types:
            continue
        question = schemas[f"{type_name}.question"]
        fields = {key: schema for key, schema in question["properties"].items() if key != "type"}
        required = [key for key in question["required"] if key != "type"]
        tools[name] = Tool(
            name=name,
            description=f"{summary} {STATE} {registry.types[type_name].summary}",
            arguments=whole({"state": of_request["state"], **fields}, ["state", *required], schemas),
            result=standalone(schemas[f"{type_name}.answer"], schemas),
            type_name=type_name,
        )
    types = "; ".join(f"{name}: {question_type.summary}" for name, question_type in registry.types.items())
    asked = {name: schema for name, schema in of_request.items() if name != "model"}
    tools["ask"] = Tool(
        name="ask",
        description=f"Answer several questions about one state at once, of any type. {STATE} Types: {types}",
        arguments=whole(asked, ["state", "questions"], schemas),
        result=standalone(answers_schema(), schemas),
    )
    return tools


def answers_schema() -> dict[str, Any]:
    """The schema of a response's body, as far as agents need it."""
    failed = {"type": "object", "required": ["x_error"], "description": "With x_partial: the question's type failed."}
    answer = {"anyOf": [{"$ref": f"{REF}Answer"}, failed]}
    return {
        "type": "object",
        "required": ["model", "answers", "usage"],
        "properties": {
            "model": {"type": "string", "description": "The model that answered."},
            "answers": {
                "type": "object",
                "additionalProperties": answer,
                "description": "Question id to its answer.",
            },
            "usage": {"type": "object", "additionalProperties": {"type": "integer"}, "description": "Tokens read."},
        },
    }


def whole(properties: dict[str, Any], required: list[str], schemas: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object that has no other properties, with all that it refers to in it."""
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return standalone(schema, schemas)


def standalone(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with those it refers to under ``$defs``, and without what OpenAPI alone knows."""
    definitions: dict[str, Any] = {}
    waiting: list[Any] = [schema]
    while waiting:
        for reference in references(waiting.pop()):
            name = reference["$ref"].removeprefix(REF)
            if name not in definitions:
                definitions[name] = schemas[name]
                waiting.append(schemas[name])
    plain: dict[str, Any] = _plain({**schema, "$defs": definitions} if definitions else schema)
    return plain


def _plain(node: Any) -> Any:
    if isinstance(node, list):
        return [_plain(child) for child in node]
    if not isinstance(node, Mapping):
        return node.replace(REF, "#/$defs/") if isinstance(node, str) and node.startswith(REF) else node
    return {key: _plain(child) for key, child in node.items() if key != "discriminator"}
