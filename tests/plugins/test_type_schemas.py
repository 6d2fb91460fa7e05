"""Schemas come from the plugins' own classes, and two plugins may use one class name."""

from __future__ import annotations

import jsonschema_rs
import pytest
from attrs import field, frozen
from plugin_distribution import WORKING, install

from openjev_core import QuestionType
from openjev_core.plugins.registry import load_registry, registry_of
from openjev_core.plugins.schemas import components
from openjev_core.plugins.structuring import QuestionConverter


def references(schema):
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"]
        for child in schema.values():
            yield from references(child)
    elif isinstance(schema, list):
        for child in schema:
            yield from references(child)


def resolved(schemas):
    return {ref.removeprefix("#/components/schemas/") for ref in references(schemas)} <= set(schemas)


def valid(schemas, name, value):
    schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
    return jsonschema_rs.Draft202012Validator(schema).is_valid(value)


def test_the_unions_name_every_installed_type():
    schemas = components(load_registry().types)
    mapping = {name: f"#/components/schemas/{name}.question" for name in ("choice", "noul", "score")}
    assert {"propertyName": "type", "mapping": mapping} == schemas["Question"]["discriminator"]
    assert [{"$ref": ref} for ref in mapping.values()] == schemas["Question"]["oneOf"]
    assert {"choice", "noul", "score"} == set(schemas["Answer"]["discriminator"]["mapping"])
    assert resolved(schemas)


def test_requests_are_closed_and_tagged():
    schemas = components(load_registry().types)
    noul = schemas["noul.question"]
    assert {"const": "noul", "type": "string"} == noul["properties"]["type"]
    assert ["type"] == noul["required"]
    assert False is noul["additionalProperties"] is schemas["noul.NoulCriteria"]["additionalProperties"]
    assert ["type", "noul"] == schemas["noul.answer"]["required"]
    assert noul["description"].startswith("A yes/no question or statement, answered with P(yes).\n\n")


QUESTIONS = [
    ({"type": "noul", "instructions": "x"}, True),
    ({"type": "noul", "instructions": "x", "criteria": {"true": None}}, True),
    ({"type": "noul", "criteria": {"maybe": "x"}}, False),
    ({"type": "choice", "criteria": {"a": None, "b": {"c": 1}}}, True),
    ({"type": "choice", "criteria": {"a": 1}}, False),
    ({"type": "choice"}, False),
    ({"type": "score", "criteria": ["a", ["b"]], "instructions": None}, True),
    ({"type": "score", "criteria": {"0": "a"}}, False),
    ({"type": "score", "criteria": ["a", "b"], "extra": 1}, False),
    ({"type": "bogus"}, False),
]


@pytest.mark.parametrize(("question", "expected"), QUESTIONS)
def test_the_schema_accepts_what_structuring_accepts(question, expected):
    assert expected == valid(components(load_registry().types), "Question", question)
    converter = QuestionConverter(load_registry())
    if expected:
        converter.question(question)
    else:
        with pytest.raises(Exception, match=r"expected|unknown|missing"):
            converter.question(question)


def test_two_plugins_with_one_class_name_do_not_clash(site):
    parts = WORKING.replace(
        "    heads: float", "    heads: Part\n\n\n@frozen(kw_only=True)\nclass Part:\n    {}: float"
    )
    install(site, "openjev-coin", parts.replace("{}", "width"))
    install(site, "openjev-dice", parts.replace("{}", "height").replace('"coin"', '"dice"'))
    registry = load_registry()
    assert () == registry.failures
    schemas = components(registry.types)
    assert {"width"} == set(schemas["coin.Part"]["properties"])
    assert {"height"} == set(schemas["dice.Part"]["properties"])
    assert {"$ref": "#/components/schemas/dice.Part"} == schemas["dice.answer"]["properties"]["heads"]
    assert resolved(schemas)


@frozen(kw_only=True)
class Tree:
    size: int
    branches: list[Tree] = field(factory=list)


@frozen(kw_only=True)
class TreeAnswer:
    tree: Tree


def test_a_class_that_holds_itself_and_stands_in_the_answer_too():
    tree = QuestionType(
        name="tree",
        summary="Trees.",
        api=1,
        question=Tree,
        answer=TreeAnswer,
        readouts=lambda question: [],
        reduce=lambda question, distributions: TreeAnswer(tree=question),
    )
    schemas = components(registry_of(tree).types)
    assert resolved(schemas)
    assert "type" not in schemas["tree.Tree"]["properties"]
    assert valid(schemas, "Question", {"type": "tree", "size": 1, "branches": [{"size": 2}]})
    assert not valid(schemas, "Question", {"type": "tree", "size": 1, "branches": [{"size": 2, "type": "tree"}]})
    assert valid(schemas, "Answer", {"type": "tree", "tree": {"size": 1, "branches": []}})


def test_without_plugins_the_unions_accept_nothing_and_stay_valid():
    schemas = components({})
    assert jsonschema_rs.meta.is_valid(schemas["Question"])
    assert not valid(schemas, "Question", {"type": "noul"})
