"""JSON schemas of the installed question types, from their own classes."""

from __future__ import annotations

from typing import Any

import msgspec

from openjev_core.plugins.registry import Registry
from openjev_core.question import QuestionType

REF = "#/components/schemas/{name}"


def components(registry: Registry) -> dict[str, Any]:
    """OpenAPI component schemas: ``Question`` and ``Answer`` as unions over the installed types, and their parts.

    A type named ``rank`` gives ``rank.question`` and ``rank.answer``; classes that these refer to are named
    ``rank.ClassName``, so that two plugins may use one class name.
    """
    schemas: dict[str, Any] = {}
    for question_type in registry.types.values():
        for role, cls in (("question", question_type.question), ("answer", question_type.answer)):
            schemas.update(_schemas_of(question_type, role, cls))
    for union, role in (("Question", "question"), ("Answer", "answer")):
        names = {name: REF.format(name=f"{name}.{role}") for name in registry.types}
        schemas[union] = {
            "title": union,
            "oneOf": [{"$ref": ref} for ref in names.values()],
            "discriminator": {"propertyName": "type", "mapping": names},
        }
    return schemas


def _schemas_of(question_type: QuestionType[Any, Any], role: str, cls: type) -> dict[str, Any]:
    """The schema of one class, with its ``type`` tag, and of the classes that it refers to."""
    template = f"#/components/schemas/{question_type.name}.{{name}}"
    _, found = msgspec.json.schema_components([cls], ref_template=template)
    schemas: dict[str, Any] = {}
    for name, schema in found.items():
        if schema.get("type") == "object" and "properties" in schema and role == "question":
            schema["additionalProperties"] = False  # requests are structured strictly
        if name != cls.__name__:
            schemas[f"{question_type.name}.{name}"] = schema
            continue
        tagged = {"type": {"const": question_type.name, "type": "string"}, **schema["properties"]}
        schemas[f"{question_type.name}.{role}"] = {
            **schema,
            "title": f"{question_type.name} {role}",
            "properties": tagged,
            "required": ["type", *schema.get("required", [])],
        }
        if role == "question":
            schemas[f"{question_type.name}.{role}"]["description"] = _described(question_type, schema)
    return schemas


def _described(question_type: QuestionType[Any, Any], schema: dict[str, Any]) -> str:
    own = schema.get("description", "")
    return f"{question_type.summary}\n\n{own}".strip()
