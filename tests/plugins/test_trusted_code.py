"""What the guide asks of a reviewer holds for openjev's own types and its examples."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted([
    *ROOT.glob("plugins/*/*.py"),
    *(path for path in ROOT.glob("examples/plugins/*/openjev_*/**/*.py") if ".venv" not in path.parts),
])  # fmt: skip
MATCHERS = {"re", "regex", "fnmatch", "glob", "matches_re", "parse"}
"""What looks at a text by a pattern: one call of it may take for ever, and holds up the whole process meanwhile."""


def names_of(source):
    """Every module that a source imports, and every name that it takes from one or looks up in one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield node.attr


def test_every_type_is_looked_at():
    found = {path.parts[-2] for path in SOURCES}
    assert {"openjev_choice", "openjev_noul", "openjev_score"} <= found
    assert {f"openjev_{name}" for name in ("abstain", "number", "rank", "tags", "taxonomy", "followup")} <= found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_regular_expression_looks_at_a_clients_text(path):
    assert set() == MATCHERS & set(names_of(path.read_text("utf-8")))


@pytest.mark.parametrize(
    "source",
    [
        "import re\n",
        "from re import match\n",
        "import regex as r\n",
        "from attrs import validators\nvalidators.matches_re('(a+)+$')\n",
        "from attrs.validators import matches_re\n",
    ],
)
def test_one_would_be_found(source):
    assert MATCHERS & set(names_of(source))
