"""Other people's clients against the embedded engine: every one gets the answers that every other gets.

``OPENJEV_TEST_CLIENTS`` names a Python that has them; CONTRIBUTING says how to make one.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from openjev_process import clean_environment, serving

PYTHON = os.environ.get("OPENJEV_TEST_CLIENTS")
CLIENTS = [
    "openai",
    "openai async",
    "litellm decisions",
    "litellm systemone",
    "langchain-openai",
    "langchain-openai async",
    "langchain-typesafe",
    "langchain-typesafe async",
    "typesafe-haystack",
    "typesafe-sdk",
]


@pytest.mark.skipif(PYTHON is None, reason="OPENJEV_TEST_CLIENTS names no Python that has other people's clients")
def test_every_client_gets_the_same_answers():
    with serving(OPENJEV_SERVED_MODEL_NAME="openjev,gpt-6-luna") as child:
        url = child.wait_until_it_listens()
        script = Path(__file__).parent / "foreign_clients.py"
        done = subprocess.run(
            [str(PYTHON), "-W", "ignore", str(script), url],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            # LiteLLM would ask the network for prices.
            env=clean_environment(LITELLM_LOCAL_MODEL_COST_MAP="True"),
        )
        child.stop()
    assert 0 == done.returncode, done.stderr
    names, *answers = zip(*map(json.loads, done.stdout.splitlines()), strict=True)
    assert CLIENTS == list(names)
    for answer in answers:
        assert 1 == len(set(answer)), answer
