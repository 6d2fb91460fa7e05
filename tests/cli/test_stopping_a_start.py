"""``openjev serve`` that is stopped while it starts: it ends at once, with the status of a normal stop."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from openjev_process import serving
from tiny_tokenizer import write_tiny_tokenizer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals and files on Windows")

NEVER = "http://127.0.0.1:9"


@pytest.fixture
def endless(tmp_path):
    """A model directory whose tokenizer never finishes loading: a pipe that nobody writes to."""
    folder = tmp_path / "endless"
    folder.mkdir()
    os.mkfifo(folder / "tokenizer.json")
    return folder


def wait_for(child, words):
    deadline = time.monotonic() + 60
    while words not in child.log:
        assert time.monotonic() < deadline, child.log
        assert child.process.poll() is None, child.log
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_load_is_not_waited_for(endless, number):
    with serving("--connect", NEVER, "--model", endless) as child:
        wait_for(child, "loading the tokenizer")
        assert 0 == child.stop(number)
        assert "Traceback" not in child.log


def test_neither_do_workers_wait(endless):
    with serving("--connect", NEVER, "--model", endless, "--workers", "2") as child:
        wait_for(child, "loading the tokenizer")
        assert 0 == child.stop()
        assert "Traceback" not in child.log


@pytest.fixture
def launching(tmp_path):
    """Flags and environment with which this Python has the stand-in for SGLang, which never gets ready."""
    doubles = Path(__file__).parents[1] / "doubles"
    environment = {
        "PYTHONPATH": f"{doubles / 'standin'}:{doubles}",
        "STANDIN_REPORT": str(tmp_path / "report.json"),
        "STANDIN_MODE": "ready",
        "TMPDIR": str(tmp_path),
    }
    return ("--sglang-python", sys.executable, "--model", write_tiny_tokenizer(tmp_path / "tiny")), environment


@pytest.mark.skipif(sys.platform != "linux", reason="SGLang runs on Linux")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_launched_sglang_that_still_loads_is_stopped_too(launching, number):
    flags, environment = launching
    with serving(*flags, **environment) as child:
        wait_for(child, "server_args=")
        assert 0 == child.stop(number)
        assert "Traceback" not in child.log


@pytest.mark.skipif(sys.platform != "linux", reason="SGLang runs on Linux")
def test_a_tokenizer_that_still_loads_does_not_hold_a_launched_sglang(launching, endless):
    flags, environment = launching
    with serving(*flags, "--model", endless, **{**environment, "STANDIN_MODE": ""}) as child:
        wait_for(child, "SGLang is ready after")
        assert 0 == child.stop()
        assert "Traceback" not in child.log
