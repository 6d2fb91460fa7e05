"""``openjev plugins list``."""

from __future__ import annotations

import json
import sys
import types
from importlib.metadata import EntryPoint, version

import pytest
import typer

import openjev_core
from openjev_core.cli.app import app
from openjev_core.plugins import declared, hookspecs


@pytest.fixture
def broken(monkeypatch):
    """A plugin that does not import, beside the installed ones."""
    point = EntryPoint("broken", "not_there_at_all", "openjev")
    installed = declared.entry_points
    monkeypatch.setattr(declared, "entry_points", lambda **query: [*installed(**query), point])


def listed(openjev):
    return {row["name"]: row for row in json.loads(openjev("plugins", "list", "--json").stdout)}


def test_the_three_types_are_listed_with_where_they_come_from(openjev):
    found = listed(openjev)
    for name in ("noul", "choice", "score"):
        row = found[name]
        assert ("openjev", version("openjev"), "loaded", None) == (
            row["distribution"],
            row["version"],
            row["status"],
            row["cause"],
        )
        assert row["summary"].endswith(".")


def test_the_engines_are_listed_beside_them(openjev):
    found = listed(openjev)
    assert ("question type", "A yes/no question or statement, answered with P(yes).") == (
        found["noul"]["kind"],
        found["noul"]["summary"],
    )
    assert {"llama.cpp", "llama-server", "sglang", "systemone", "decisions"} <= {
        row["name"] for row in found.values() if row["kind"] == "engine"
    }


def test_the_table_has_the_same(openjev):
    table = openjev("plugins", "list").stdout
    for name, row in listed(openjev).items():
        line = next(line for line in table.splitlines() if line.startswith(f"{name} "))
        assert f"{row['distribution']} {row['version']}" in line
        assert row["summary"] in line


@pytest.mark.usefixtures("broken")
def test_a_failure_is_listed_with_its_cause(openjev):
    row = listed(openjev)["broken"]
    assert ("failed", None) == (row["status"], row["summary"])
    assert "not_there_at_all: ModuleNotFoundError: No module named 'not_there_at_all'" in row["cause"]
    assert "ModuleNotFoundError" in openjev("plugins", "list").stdout


def test_a_blocked_plugin_says_so(openjev, monkeypatch):
    monkeypatch.setenv("OPENJEV_DISABLE_PLUGINS", "openjev")
    assert {"blocked"} == {row["status"] for row in listed(openjev).values()}


def test_a_name_that_disables_nothing_is_told(openjev, monkeypatch):
    monkeypatch.setenv("OPENJEV_DISABLE_PLUGINS", "openjev-cion")
    for more in ((), ("--json",)):
        result = openjev("plugins", "list", *more)
        assert 0 == result.exit_code
        assert "OPENJEV_DISABLE_PLUGINS: 'openjev-cion' disables nothing" in result.stderr
    assert "loaded" == listed(openjev)["noul"]["status"]


def test_nothing_installed_is_said(openjev, monkeypatch):
    monkeypatch.setattr(declared, "entry_points", lambda **_: [])
    assert openjev("plugins", "list").stdout.startswith("no plugins are installed")
    assert [] == json.loads(openjev("plugins", "list", "--json").stdout)


@pytest.fixture
def adding(monkeypatch):
    """Installs a plugin that adds commands."""

    def add(commands):
        module = types.ModuleType("coin_plugin")
        module.openjev_commands = openjev_core.hookimpl(lambda: commands)
        module.openjev_commands.__name__ = "openjev_commands"
        monkeypatch.setitem(sys.modules, "coin_plugin", module)
        monkeypatch.setattr(declared, "entry_points", lambda **_: [EntryPoint("coin", "coin_plugin", "openjev")])

    return add


def flip(times: int = 1) -> None:
    """Flip a coin."""
    print("heads " * times)


def test_a_plugins_command_runs_and_is_listed(openjev, adding):
    adding({"flip": flip})
    assert "heads heads" == openjev("flip", "--times", "2").stdout.strip()
    assert "Flip a coin." in openjev("--help").stdout
    assert 2 == openjev("flop").exit_code


def unknown_annotation(sides: list[list[int]]) -> None:
    """Nothing that a flag could be."""


@pytest.mark.parametrize(
    ("commands", "cause"),
    [
        ({"serve": flip}, "the command 'serve' is one of openjev's own; choose another name"),
        ({"flip": "heads"}, "openjev_commands returned a dict that maps 'flip' to str; return a dict of name to"),
        ([flip], "openjev_commands returned list; return a dict of name to function"),
        ({"grp": typer.Typer()}, "typer makes no command of the Typer that openjev_commands returned for 'grp': "),
        ({"flip": unknown_annotation}, "typer makes no command of the function that openjev_commands returned for"),
        ({"--help": flip}, "'--help' is no name for a command: a lower-case letter, then letters, digits, - or _"),
        ({"a b": flip}, "'a b' is no name for a command"),
        ({"": flip}, "'' is no name for a command"),
        ({"flip\n": flip}, "'flip\\n' is no name for a command"),
        ({"Flip": flip}, "'Flip' is no name for a command"),
        ({7: flip}, "openjev_commands returned a dict that maps 7 to function"),
    ],
)
def test_commands_that_cannot_be_added_are_listed_with_their_cause(openjev, adding, commands, cause):
    adding(commands)
    row = listed(openjev)["coin"]
    assert "failed" == row["status"]
    assert cause in row["cause"]
    assert 0 == openjev("--help").exit_code


def test_no_plugin_can_take_the_name_of_a_command():
    own = {command.name or command.callback.__name__.replace("_", "-") for command in app.registered_commands}
    assert {*own, *(group.name for group in app.registered_groups)} == hookspecs.OWN_COMMANDS


def test_a_plugin_that_is_a_file_is_named_before_the_command(openjev, tmp_path, monkeypatch):
    """The flag stands there, since the command may be the file's own."""
    monkeypatch.setenv("OPENJEV_PLUGINS", "")
    path = tmp_path / "coin.py"
    path.write_text(
        "from openjev_core import hookimpl\n\n\n@hookimpl\ndef openjev_commands():\n"
        "    return {'toss': lambda: print('heads')}\n"
    )
    assert "heads\n" == openjev("--plugin", path, "toss").stdout
    assert "toss" in openjev("--plugin", path, "--help").stdout
    assert {str(path)} == {row["distribution"] for row in listed(openjev).values()} - {"openjev"}
    assert 2 == openjev("ask", "--plugin", path).exit_code
