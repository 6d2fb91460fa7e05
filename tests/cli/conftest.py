"""The command line, run in this process on a model without weights."""

from __future__ import annotations

import os

import pytest
from toy_model import ToyBackend, toy_model
from typer.testing import CliRunner

from openjev_core.cli.app import app
from openjev_core.engine import opening
from openjev_core.prompts.model import prompt_model


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    """No test sees the settings of whoever runs it."""
    for name in [name for name in os.environ if name.startswith("OPENJEV_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def openjev():
    """Run the command line: ``openjev("ask", "-", input="...")`` gives exit code, stdout and stderr."""

    def run(*args, input=None):
        return CliRunner().invoke(app, [str(arg) for arg in args], input=input, prog_name="openjev")

    return run


@pytest.fixture
def toy(monkeypatch):
    """Every engine that is opened has the toy model; returns its backend."""
    backend = ToyBackend()

    async def open_toy(settings, registry, progress, stack):
        progress("loading the toy")
        return prompt_model(toy_model(backend, demo=settings.model is None), settings, registry.labels)

    monkeypatch.setattr(opening, "open_model", open_toy)
    return backend
