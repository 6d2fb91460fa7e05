"""What a class's docstring says of its attributes, put where API readers look: at the attributes."""

from __future__ import annotations

import re
from typing import Any

SECTION = re.compile(r"^Attributes:[ \t]*\n((?:[ \t]+\S.*(?:\n|$)|[ \t]*\n)+)", re.MULTILINE)
ENTRY = re.compile(r"^(\w+(?:, \w+)*): (.*)$")


def with_field_docs(schema: dict[str, Any]) -> dict[str, Any]:
    """An object's schema with its docstring's ``Attributes:`` told by its properties instead of by its description.

    A property that has a description keeps it. Double backticks become Markdown's single ones.
    """
    description, properties = schema.get("description"), schema.get("properties")
    if not description or not properties:
        return schema
    found = SECTION.search(description)
    told = attributes_of(found.group(1)) if found else {}
    rest = description[: found.start()] + description[found.end() :] if found else description
    return {
        **schema,
        "description": rest.replace("``", "`").strip(),
        "properties": {
            name: {"description": told[name].replace("``", "`"), **described} if name in told else described
            for name, described in properties.items()
        },
    }


def attributes_of(section: str) -> dict[str, str]:
    """Attribute name to its text, from the indented body of an ``Attributes:`` section."""
    lines = [line for line in section.expandtabs().split("\n") if line.strip()]
    margin = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    told: dict[str, str] = {}
    current: list[str] = []
    for line in lines:
        entry = ENTRY.match(line[margin:])
        if entry:
            current = entry.group(1).split(", ")
            told.update(dict.fromkeys(current, entry.group(2).strip()))
        else:
            told.update({name: f"{told[name]} {line.strip()}" for name in current})
    return told
