"""Docstrings of question classes become descriptions of their fields."""

from __future__ import annotations

import pytest

from openjev_core.plugins.registry import load_registry
from openjev_core.plugins.schemas import components, with_field_docs


def schema(description, *names):
    return {"type": "object", "description": description, "properties": {name: {"type": "string"} for name in names}}


def test_attributes_are_told_by_their_properties():
    described = with_field_docs(
        schema(
            "Ranks things.\n\nMore on it.\n\nAttributes:\n    items: What is ranked,\n        best ``first``.\n"
            "    low, high: A bound.\n\nNot an attribute.",
            "items",
            "low",
            "high",
            "other",
        )
    )
    assert "Ranks things.\n\nMore on it.\n\nNot an attribute." == described["description"]
    assert {
        "items": {"type": "string", "description": "What is ranked, best `first`."},
        "low": {"type": "string", "description": "A bound."},
        "high": {"type": "string", "description": "A bound."},
        "other": {"type": "string"},
    } == described["properties"]


def test_a_property_keeps_a_description_of_its_own():
    before = schema("X.\n\nAttributes:\n    a: From the docstring.", "a")
    before["properties"]["a"]["description"] = "Its own."
    assert "Its own." == with_field_docs(before)["properties"]["a"]["description"]


@pytest.mark.parametrize("description", ["Plain.", "Attributes: of a flower.", "Attributes:\nnot indented"])
def test_what_is_no_such_section_stays(description):
    described = with_field_docs(schema(description, "a"))
    assert description == described["description"]
    assert {"type": "string"} == described["properties"]["a"]


def test_a_schema_without_properties_or_words_is_left_alone():
    for untouched in ({"type": "object"}, {"description": "Attributes:\n    a: x"}, schema("", "a")):
        assert untouched == with_field_docs(untouched)


def test_every_field_of_the_built_in_types_is_described():
    for name, described in components(load_registry().types).items():
        for field, about in described.get("properties", {}).items():
            assert field == "type" or about.get("description"), f"{name}.{field}"
        assert "Attributes:" not in described.get("description", "")
