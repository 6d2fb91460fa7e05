"""What CONTRIBUTING.md shows works as it stands there."""

from __future__ import annotations

import json
import re

import pytest
from document_blocks import ROOT, blocks
from installed_plugin import OPENJEV, install, run

ABSTAIN = ROOT / "examples" / "plugins" / "openjev-abstain" / "openjev_abstain" / "__init__.py"


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory):
    """The folder in which the tutorial was followed, and where its package is installed."""
    folder, site = tmp_path_factory.mktemp("tutorial"), tmp_path_factory.mktemp("site")
    run(OPENJEV, "plugins", "new", "openjev-abstain", cwd=folder)
    (module,) = blocks("CONTRIBUTING.md", "python")
    (request,) = blocks("CONTRIBUTING.md", "json")
    (folder / "openjev-abstain" / "openjev_abstain" / "__init__.py").write_text(module)
    (folder / "request.json").write_text(request)
    install(folder / "openjev-abstain", site)
    return folder, site


def test_the_type_is_the_finished_one():
    assert [ABSTAIN.read_text("utf-8")] == blocks("CONTRIBUTING.md", "python")


def test_the_type_keeps_the_contract(tutorial):
    folder, site = tutorial
    assert "ok      abstain (openjev-abstain)\n" == run(OPENJEV, "plugins", "check", "abstain", cwd=folder, site=site)


def test_the_type_is_shown(tutorial):
    folder, site = tutorial
    shown = run(OPENJEV, "plugins", "show", "abstain", cwd=folder, site=site)
    assert "none of these: the material is clear, and no other option fits it" in shown


def test_the_type_answers(tutorial):
    folder, site = tutorial
    body = json.loads(run(OPENJEV, "ask", "--json", "request.json", cwd=folder, site=site))
    answer = body["answers"]["product"]
    total = sum(answer["probabilities"].values()) + answer["none_of_these"] + answer["cannot_tell"]
    assert pytest.approx(1.0) == total


def test_the_tutorials_commands_are_those():
    """Followed above, but for ``uv run`` and an installation that needs no network."""
    scaffold, follow = (blocks("CONTRIBUTING.md", "sh")[index].splitlines() for index in (1, 2))
    assert ["uv run openjev plugins new openjev-abstain"] == scaffold
    assert [
        "uv pip install -e openjev-abstain",
        "uv run openjev plugins check abstain",
        "uv run openjev plugins show abstain",
        "uv run openjev ask request.json",
    ] == follow


def test_every_check_runs_in_ci_as_it_is_written():
    steps = (ROOT / ".ci" / "run").read_text("utf-8")
    checks = blocks("CONTRIBUTING.md", "sh")[0].splitlines()
    assert 7 == len(checks)
    for command in checks:
        assert f"step {command}\n" in steps or f"suite {command}\n" in steps


def test_every_place_that_is_named_exists():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+(?:\.py|/))`", text))
    assert len(named) > 20
    missing = {n for n in named if not any((base / n).exists() for base in (ROOT, ROOT / "openjev_core"))}
    assert set() == missing
