"""What the tests of the deployment share."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root():
    """The project's folder, where modal_app.py lies."""
    return ROOT


@pytest.fixture(scope="session")
def modal(tmp_path_factory):
    """Run modal's command line against a control plane on this machine: ``modal(url, "deploy", "modal_app.py")``."""

    no_file = tmp_path_factory.mktemp("modal") / "none.toml"

    def run(url, *words, cwd=ROOT, credentials=True, timeout=120, **variables):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENJEV_", "MODAL_"))}
        tokens = {"MODAL_TOKEN_ID": "ak-test", "MODAL_TOKEN_SECRET": "as-test"} if credentials else {}
        environment = {
            **kept,
            **tokens,
            "MODAL_SERVER_URL": url,
            "MODAL_CONFIG_PATH": str(no_file),
            **variables,
        }
        command = [sys.executable, "-m", "modal", *map(str, words)]
        return subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )

    return run


@pytest.fixture
def free_port():
    """A port on which nothing listens: it stays bound, without listening, for the length of the test."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
