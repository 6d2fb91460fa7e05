"""JSON schemas of the installed question types."""

from __future__ import annotations

from typing import Any

from openjev_core.plugins.field_docs import with_field_docs
from openjev_core.plugins.registry import Registry
from openjev_core.plugins.type_schema import schemas_of

REF = "#/components/schemas/{name}"


def components(registry: Registry) -> dict[str, Any]:
    """OpenAPI component schemas: ``Question`` and ``Answer`` as unions over the installed types, and their parts."""
    schemas: dict[str, Any] = {}
    for question_type in registry.types.values():
        schemas.update({name: with_field_docs(schema) for name, schema in schemas_of(question_type).items()})
    for union, role in (("Question", "question"), ("Answer", "answer")):
        names = {name: REF.format(name=f"{name}.{role}") for name in registry.types}
        schemas[union] = {
            "title": union,
            "oneOf": [{"$ref": ref} for ref in names.values()],
            "discriminator": {"propertyName": "type", "mapping": names},
        }
        if not names:  # a union of nothing is no valid schema; this one says the same
            schemas[union] = {"title": union, "description": "No question types are installed.", "not": {}}
    return schemas
