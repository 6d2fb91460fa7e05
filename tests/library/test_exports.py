"""What ``import openjev_core`` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import openjev_core

ENGINE_ROOMS = ("openjev_core.engine.", "openjev_core.prompts.", "openjev_core.backends.", "openjev_core.settings.")


def loaded_by(code):
    """The modules that a fresh interpreter has after ``code``."""
    script = f"{code}\nimport sys\nprint(*sorted(sys.modules))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    return result.stdout.split()


def test_importing_the_package_loads_nothing_of_it():
    modules = loaded_by("import openjev_core")
    assert ["openjev_core"] == [name for name in modules if name.startswith("openjev_core")]
    assert {"attr", "pluggy", "logging"}.isdisjoint(modules)


def test_a_plugin_loads_the_contract_alone():
    modules = loaded_by("import openjev_noul, openjev_choice, openjev_score")
    assert [] == [name for name in modules if f"{name}.".startswith(ENGINE_ROOMS)]
    assert {"tokenizers", "jinja2", "httpx", "msgspec", "asyncio"}.isdisjoint(modules)


def test_the_engine_loads_when_it_is_named():
    assert "openjev_core.engine.opening" in loaded_by("from openjev_core import open_engine")


@pytest.mark.parametrize("name", openjev_core.__all__)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(openjev_core, name)
    assert name in dir(openjev_core)
    if callable(value) and name not in ("Content", "Rounds"):  # aliases
        assert value.__doc__


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="module 'openjev_core' has no attribute 'Engin'"):
        openjev_core.Engin  # noqa: B018 - the access is what is tested
