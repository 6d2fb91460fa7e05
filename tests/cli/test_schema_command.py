"""``openjev schema``."""

from __future__ import annotations

import json
import subprocess
import sys

from openjev_core.api.openapi import openapi_document
from openjev_core.plugins.registry import load_registry


def test_it_prints_the_document_of_the_installed_types(openjev):
    assert openapi_document(load_registry()) == json.loads(openjev("schema").stdout)


def test_disabled_types_are_not_in_it(openjev, monkeypatch):
    assert "noul.question" in json.loads(openjev("schema").stdout)["components"]["schemas"]
    monkeypatch.setenv("OPENJEV_DISABLE_PLUGINS", "openjev")
    assert "noul.question" not in json.loads(openjev("schema").stdout)["components"]["schemas"]


def test_it_loads_no_engine_and_opens_no_connection():
    script = """
import socket, sys
def refuse(*args, **kwargs):
    raise AssertionError("a connection")
socket.socket.connect = refuse
sys.argv = ["openjev", "schema"]
from openjev_core.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
loaded = {"tokenizers", "xllamacpp", "httpx", "jinja2"} & set(sys.modules)
assert not loaded, loaded
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (0, "") == (result.returncode, result.stderr)
    assert "3.1.0" == json.loads(result.stdout)["openapi"]
