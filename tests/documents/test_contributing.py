"""What CONTRIBUTING.md shows works as it stands there."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest
from document_blocks import ROOT, blocks, commands

from openjev_core.plugins.registry import registry_from
from openjev_core.testing import check_question_type, scripted_engine


@pytest.fixture
def coin(monkeypatch):
    """The tutorial's module."""
    (source,) = blocks("CONTRIBUTING.md", "python")
    module = ModuleType("openjev_coin")
    monkeypatch.setitem(sys.modules, "openjev_coin", module)
    exec(compile(source, "openjev_coin.py", "exec"), module.__dict__)
    return module


@pytest.mark.anyio
async def test_the_question_type_answers(coin):
    engine = scripted_engine(coin.COIN, script=lambda prompt, labels: [0.75, 0.25])
    questions = {"q": {"type": "coin", "instructions": "Which side?"}}
    evaluation = await engine.evaluate(state="A gambler speaks.", questions=questions)
    assert {"type": "coin", "heads": pytest.approx(0.75)} == evaluation.answers["q"]


def test_the_question_type_keeps_the_contract(coin):
    check_question_type(coin.COIN)


def test_its_entry_point_registers_it(coin):
    (project,) = [tomllib.loads(text) for text in blocks("CONTRIBUTING.md", "toml")]
    ((name, value),) = project["project"]["entry-points"]["openjev"].items()
    assert coin.__name__ == value
    assert [coin.COIN] == list(registry_from([EntryPoint(name, value, "openjev")]).types.values())
    assert [f"{value}.py"] == project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]


def test_every_check_runs_in_ci_as_it_is_written():
    steps = (ROOT / ".ci" / "run").read_text("utf-8")
    for command in commands("CONTRIBUTING.md"):
        assert f"step {command}" in steps


def test_every_place_that_is_named_exists():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+(?:\.py|/))`", text))
    assert len(named) > 20
    missing = {n for n in named if not any((base / n).exists() for base in (ROOT, ROOT / "openjev_core"))}
    assert {"openjev_coin.py"} == missing
