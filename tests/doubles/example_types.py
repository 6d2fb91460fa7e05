"""The question types of the example plugins beside openjev's own, without an installation."""

from __future__ import annotations

import importlib
import sys
from functools import cache

from document_blocks import ROOT

from openjev_core.plugins.registry import load_registry, registry_of
from openjev_core.plugins.structuring import QuestionConverter

PLUGINS = ("abstain", "followup", "number", "rank", "tags", "taxonomy")


@cache
def every_type():
    """A registry of all of them."""
    packages = [str(ROOT / "examples" / "plugins" / f"openjev-{name}") for name in PLUGINS]
    sys.path[:0] = packages
    try:
        modules = [importlib.import_module(f"openjev_{name}") for name in PLUGINS]
    finally:
        del sys.path[: len(packages)]
    examples = [t for module in modules for t in module.openjev_question_types()]
    return registry_of(*load_registry().types.values(), *examples)


@cache
def every_question():
    """Every example of every type, as JSON, by type and number."""
    registry = every_type()
    converter = QuestionConverter(registry)
    return {
        f"{name} {number}": converter.wire_question(question_type, example)
        for name, question_type in registry.types.items()
        for number, example in enumerate(question_type.examples)
    }
