"""JSON schemas of question types, from their own classes and the docstrings of these."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from openjev_core.question import QuestionType

REF = "#/components/schemas/{name}"
SECTION = re.compile(r"^Attributes:[ \t]*\n((?:[ \t]+\S.*(?:\n|$)|[ \t]*\n)+)", re.MULTILINE)
ENTRY = re.compile(r"^(\w+(?:, \w+)*): (.*)$")


def components(types: Mapping[str, QuestionType[Any, Any]]) -> dict[str, Any]:
    """OpenAPI component schemas: ``Question`` and ``Answer`` as unions over the types, and their parts."""
    schemas: dict[str, Any] = {}
    for question_type in types.values():
        schemas.update({name: with_field_docs(schema) for name, schema in schemas_of(question_type).items()})
    for union, role in (("Question", "question"), ("Answer", "answer")):
        names = {name: REF.format(name=f"{name}.{role}") for name in types}
        schemas[union] = {
            "title": union,
            "oneOf": [{"$ref": ref} for ref in names.values()],
            "discriminator": {"propertyName": "type", "mapping": names},
        }
        if not names:  # a union of nothing is no valid schema; this one says the same
            schemas[union] = {"title": union, "description": "No question types are installed.", "not": {}}
    return schemas


def schemas_of(question_type: QuestionType[Any, Any]) -> dict[str, Any]:
    """The component schemas of a question type.

    A type named ``rank`` gives ``rank.question`` and ``rank.answer``, with their ``type`` tag; classes that these refer
    to are named ``rank.ClassName``, so that two plugins may use one class name.

    Raises:
        TypeError: A class has a field that no schema describes.
    """
    name = question_type.name
    question = _tagged(name, "question", question_type.question)
    own = question[f"{name}.question"]
    own["description"] = f"{question_type.summary}\n\n{own.get('description', '')}".strip()
    for schema in question.values():
        if schema.get("type") == "object" and "properties" in schema:
            schema["additionalProperties"] = False  # requests are structured strictly
    # A class that both refer to is described as the question needs it.
    return {
        key: explicit(schema) for key, schema in {**_tagged(name, "answer", question_type.answer), **question}.items()
    }


def explicit(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that says what it leaves open, as the generators of clients need it.

    They take an array without ``items`` for an error, a bare object for one without fields, and a field with a default
    for one that is always sent, although a default of null says no more than that the field may be absent.
    """
    out = {key: value for key, value in schema.items() if key != "default" or value is not None}
    kind = schema.get("type")
    if kind == "array" and "prefixItems" not in schema:
        out.setdefault("items", {})
    if kind == "object" and "properties" not in schema:
        out.setdefault("additionalProperties", True)
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if key in out:
            out[key] = [explicit(child) for child in out[key]]
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), dict):
            out[key] = explicit(out[key])
    if "properties" in out:
        out["properties"] = {name: explicit(child) for name, child in out["properties"].items()}
    return out


def _tagged(name: str, role: str, cls: type) -> dict[str, Any]:
    template = REF.format(name=f"{name}.{{name}}")
    (reference,), found = msgspec.json.schema_components([cls], ref_template=template)
    schemas = {f"{name}.{part}": schema for part, schema in found.items()}
    own = reference["$ref"].removeprefix(REF.format(name=""))
    schema = schemas.pop(own)
    if reference in references(found):  # a class that holds others of itself, which have no tag
        schemas[own] = schema
    tagged = {
        **schema,
        "title": f"{name} {role}",
        "properties": {"type": {"const": name, "type": "string"}, **schema["properties"]},
        "required": ["type", *schema.get("required", [])],
    }
    return {f"{name}.{role}": tagged, **schemas}


def references(schema: Any) -> Iterator[dict[str, Any]]:
    """Every ``{"$ref": ...}`` in a schema."""
    if isinstance(schema, list):
        for child in schema:
            yield from references(child)
    elif isinstance(schema, dict):
        if "$ref" in schema:
            yield schema
        yield from references(list(schema.values()))


def with_field_docs(schema: dict[str, Any]) -> dict[str, Any]:
    """An object's schema whose ``Attributes:`` section has moved from its description to its properties.

    A property that has a description keeps it. Double backticks become Markdown's single ones.
    """
    description, properties = schema.get("description"), schema.get("properties")
    if not description or not properties:
        return schema
    found = SECTION.search(description)
    texts = attributes_of(found.group(1)) if found else {}
    rest = description[: found.start()] + description[found.end() :] if found else description
    return {
        **schema,
        "description": rest.replace("``", "`").strip(),
        "properties": {
            name: {"description": texts[name].replace("``", "`"), **described} if name in texts else described
            for name, described in properties.items()
        },
    }


def attributes_of(section: str) -> dict[str, str]:
    """Attribute name to its text, from the indented body of an ``Attributes:`` section."""
    lines = [line for line in section.expandtabs().split("\n") if line.strip()]
    margin = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    texts: dict[str, str] = {}
    current: list[str] = []
    for line in lines:
        entry = ENTRY.match(line[margin:])
        if entry:
            current = entry.group(1).split(", ")
            texts.update(dict.fromkeys(current, entry.group(2).strip()))
        else:
            texts.update({name: f"{texts[name]} {line.strip()}" for name in current})
    return texts
