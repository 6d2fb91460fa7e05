"""A plugin may be one Python file, named by a path."""

from __future__ import annotations

import sys

import pytest
from plugin_distribution import WORKING, install, working

from openjev_core.plugins.registry import load_registry

BUILT_IN = {"choice", "noul", "score"}


@pytest.fixture
def file(tmp_path):
    """Writes a plugin's file; its module is forgotten afterwards."""

    def write(name, source):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
        return str(path)

    yield write
    for name in [name for name in sys.modules if name.startswith(str(tmp_path))]:
        del sys.modules[name]


def test_a_file_is_a_plugin(file):
    path = file("mood.py", WORKING)
    registry = load_registry(files=[path])
    (entry,) = (entry for entry in registry.entries if entry.name == "mood")
    assert (path, "file", "loaded", None) == (entry.distribution, entry.version, entry.status, entry.cause)
    assert BUILT_IN | {"coin"} == set(registry.types)
    assert () == load_registry([path], [path]).failures
    assert BUILT_IN == set(load_registry([path], [path]).types)


def test_a_file_runs_once(file):
    path = file("mood.py", WORKING)
    first, second = (load_registry(files=[path, path]).types["coin"].question for _ in range(2))
    assert first is second


def test_files_of_one_name_are_two_and_shadow_no_module(file):
    paths = [file("a/json.py", WORKING), file("b/json.py", working(name="'dice'"))]
    assert BUILT_IN | {"coin", "dice"} == set(load_registry(files=paths).types)
    assert "dumps" in vars(__import__("json"))


def test_a_file_that_claims_an_installed_type_is_a_conflict(file, site):
    install(site, "openjev-coin", WORKING)
    path = file("mood.py", WORKING)
    failures = load_registry(files=[path]).failures
    assert {"openjev-coin", path} == {failure.distribution for failure in failures}
    assert f"is claimed by {path} file and openjev-coin 1.0" in failures[0].cause


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("mood.txt", "ValueError: a plugin's file ends in .py, found "),
        ("mood.py", "NameError: name 'no_such_name' is not defined (mood.py:1)"),
    ],
)
def test_a_file_that_cannot_be_loaded_says_why_each_time(file, name, cause):
    path = file(name, "no_such_name")
    for _ in range(2):
        (failure,) = load_registry(files=[path]).failures
        assert cause in failure.cause


@pytest.mark.parametrize("path", ["not/there.py", "."])
def test_what_is_no_file_says_so(path):
    registry = load_registry(files=[path])
    assert [f"{path}: no such file; give the path of a Python file"] == [f.cause for f in registry.failures]
    assert BUILT_IN == set(registry.types)
