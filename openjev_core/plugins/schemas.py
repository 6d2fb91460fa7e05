"""JSON schemas of question types, from their own classes and the docstrings of these."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, get_args

import msgspec
from attrs import NOTHING

from openjev_core.plugins.forms import (
    DATES,
    Field,
    bare,
    collection_kind,
    constraints,
    element_of,
    fields_of,
    given_fields,
    is_collection,
    is_enumeration,
    is_object,
    is_union,
    kinds_of,
)
from openjev_core.plugins.validators import demanding, keywords
from openjev_core.plugins.writing import as_json, json_fault
from openjev_core.question import QuestionType

REF = "#/components/schemas/{name}"
SECTION = re.compile(r"^Attributes:[ \t]*\n((?:[ \t]+\S.*(?:\n|$)|[ \t]*\n)+)", re.MULTILINE)
ENTRY = re.compile(r"^(\w+(?:, \w+)*): (.*)$")


def components(types: Mapping[str, QuestionType[Any, Any]]) -> dict[str, Any]:
    """OpenAPI component schemas: ``Question`` and ``Answer`` as unions over the types, and their parts."""
    schemas: dict[str, Any] = {}
    for question_type in types.values():
        schemas.update(schemas_of(question_type))
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
    question = Writer(name, question=True).tagged(question_type.question)
    own = question[f"{name}.question"]
    own["description"] = f"{question_type.summary}\n\n{own.get('description', '')}".strip()
    # A class that both refer to is described as the question needs it.
    return {**Writer(name, question=False).tagged(question_type.answer), **question}


class Writer:
    """Writes the component schemas of a question or answer class, and of what it refers to.

    What is left open is said, as the generators of clients need it: they take an array without ``items`` for an error,
    a bare object for one without fields, and a field with a default for one that is always sent, although a default of
    null says no more than that the field may be absent.

    Args:
        name: The question type's.
        question: Whether the class is that of questions, which are structured strictly.
    """

    def __init__(self, name: str, *, question: bool) -> None:
        self._name = name
        self._question = question
        self._components: dict[type, tuple[str, dict[str, Any]]] = {}

    def tagged(self, cls: type) -> dict[str, Any]:
        """The class with the tag of its type, and all that it refers to, by their names as components."""
        role = "question" if self._question else "answer"
        schema = self.object(cls)
        tagged = {
            **schema,
            "title": f"{self._name} {role}",
            "properties": {"type": {"const": self._name, "type": "string"}, **schema["properties"]},
            "required": ["type", *schema["required"]],
        }
        return {f"{self._name}.{role}": tagged, **dict(self._components.values())}

    def object(self, cls: type) -> dict[str, Any]:
        """An attrs class, its required fields first."""
        fields = sorted(given_fields(cls) if self._question else fields_of(cls), key=lambda field: not field.required)
        schema = {
            "title": cls.__name__,
            **({"description": inspect.cleandoc(cls.__doc__)} if cls.__doc__ else {}),
            "type": "object",
            "properties": {field.name: self.field(field) for field in fields},
            "required": [field.name for field in fields if field.required],
            **({"additionalProperties": False} if self._question else {}),
        }
        return with_field_docs(schema, {field.name: field.attribute.name for field in fields})

    def field(self, field: Field) -> dict[str, Any]:
        """A field of a class, with what its validators demand and its default."""
        demanded = keywords(field.attribute.validator, kinds_of(field.type)) if self._question else {}
        schema = demanding(self.schema(field.type), demanded)
        default: Any = field.attribute.default
        if getattr(default, "factory", None) in (list, dict, tuple):
            default = default.factory()
        written = as_json(default, given_fields)
        known = default is not None and default is not NOTHING and json_fault(written) is None
        return {**schema, "default": written} if known else schema

    def schema(self, tp: Any) -> dict[str, Any]:  # noqa: PLR0911 - one return per kind of type
        """Any type that has a strict form in JSON."""
        if metas := constraints(tp):
            # msgspec need not know what stands inside a collection.
            form = tp.__origin__ if bare(tp) in DATES else next(iter(kinds_of(tp)))
            inner = self.schema(tp.__origin__)
            described = msgspec.json.schema(Annotated[(form, *metas)])
            if "$ref" in inner:
                described.pop("type")
            return {**described, **inner}
        tp = bare(tp)
        if tp is Any:
            return {}
        if is_union(tp):
            return {"anyOf": [self.schema(member) for member in get_args(tp)]}
        if is_collection(tp):
            element = self.schema(element_of(tp))
            if collection_kind(tp) is dict:
                return {"type": "object", "additionalProperties": element or True}
            return {"type": "array", "items": element}
        if is_object(tp) or (is_enumeration(tp) and isinstance(tp, type)):
            return {"$ref": REF.format(name=self.component(tp))}
        return msgspec.json.schema(tp)

    def component(self, cls: type) -> str:
        """The name of a class's component, which is written when it is first met."""
        if cls not in self._components:
            taken = {name for name, _ in self._components.values()}
            name = f"{self._name}.{cls.__name__}"
            if name in taken:
                name = f"{self._name}.{cls.__module__}.{cls.__qualname__}".replace("<", "").replace(">", "")
            self._components[cls] = name, {}  # it may hold itself
            own = self.object(cls) if is_object(cls) else msgspec.json.schema(cls)["$defs"][cls.__name__]
            self._components[cls][1].update(own)
        return self._components[cls][0]


def references(schema: Any) -> Iterator[dict[str, Any]]:
    """Every ``{"$ref": ...}`` in a schema."""
    if isinstance(schema, list):
        for child in schema:
            yield from references(child)
    elif isinstance(schema, dict):
        if "$ref" in schema:
            yield schema
        yield from references(list(schema.values()))


def with_field_docs(schema: dict[str, Any], attributes: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """An object's schema whose ``Attributes:`` section has moved from its description to its properties.

    A property that has a description keeps it. Double backticks become Markdown's single ones.

    Args:
        schema: The schema.
        attributes: A property's name to the attribute's, where they differ.
    """
    description, properties = schema.get("description"), schema.get("properties")
    if not description or not properties:
        return schema
    section = SECTION.search(description)
    texts = attributes_of(section.group(1)) if section else {}
    rest = description[: section.start()] + description[section.end() :] if section else description
    return {
        **schema,
        "description": rest.replace("``", "`").strip(),
        "properties": {
            name: {"description": texts[found].replace("``", "`"), **described} if found in texts else described
            for name, described in properties.items()
            for found in [attributes.get(name, name)]
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
