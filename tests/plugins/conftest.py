"""A folder that counts as installed."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder on ``sys.path``; the modules that are imported from it are forgotten afterwards."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()
    yield folder
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(folder)):
            del sys.modules[name]
