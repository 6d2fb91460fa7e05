"""Every hook has a typed return, its arguments described, and an example that registers."""

from __future__ import annotations

import inspect
import textwrap
import types
import typing

import pytest

from openjev_core.plugins import hookspecs
from openjev_core.plugins.registry import contributions_of

HOOKS = {name: value for name, value in vars(hookspecs).items() if name.startswith("openjev_")}


def test_there_are_hooks():
    names = ("question_types", "engines", "evaluation_finished", "commands")
    assert {f"openjev_{name}" for name in names} == set(HOOKS)


@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS)
def test_a_hook_is_typed_and_described(hook):
    hints = typing.get_type_hints(hook)
    doc = inspect.getdoc(hook)

    assert "return" in hints
    for argument in inspect.signature(hook).parameters:
        assert argument in hints
        assert f"    {argument}: " in doc


@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS)
def test_a_hook_s_example_registers(hook):
    doc = inspect.getdoc(hook)
    block = doc[doc.index("Example:") :].split("::", 1)[1]
    module = types.ModuleType("example_plugin")
    exec(compile(textwrap.dedent(block), hook.__name__, "exec"), module.__dict__)

    contributed = contributions_of(module)

    assert any(contributed.values())
