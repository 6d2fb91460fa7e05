"""``openjev serve`` that is stopped while it starts: it ends at once, with the status of a normal stop."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest
from openjev_process import serving
from tiny_tokenizer import write_tiny_tokenizer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals and files on Windows")

FLAGS = ("--connect", "http://127.0.0.1:9", "--engine", "sglang", "--skip-checks")
ENDLESS = """
import pathlib, threading

read = pathlib.Path.read_bytes


def read_bytes(path):
    if path.name == "tokenizer.json":
        threading.Event().wait()
    return read(path)


pathlib.Path.read_bytes = read_bytes
"""


@pytest.fixture
def model(tmp_path):
    return write_tiny_tokenizer(tmp_path / "tiny")


@pytest.fixture
def endless(tmp_path):
    """An entry of ``PYTHONPATH`` with which the reading of a tokenizer never ends, in whatever thread it is done."""
    folder = tmp_path / "endless"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(ENDLESS)
    return str(folder)


def wait_for(child, words):
    deadline = time.monotonic() + 60
    while words not in child.log:
        assert time.monotonic() < deadline, child.log
        assert child.process.poll() is None, child.log
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_load_is_not_waited_for(endless, model, number):
    with serving(*FLAGS, "--model", model, PYTHONPATH=endless) as child:
        wait_for(child, "loading the tokenizer")
        assert 0 == child.stop(number)
        assert "Traceback" not in child.log


def test_neither_do_workers_wait(endless, model):
    with serving(*FLAGS, "--model", model, "--workers", "2", PYTHONPATH=endless) as child:
        wait_for(child, "loading the tokenizer")
        assert 0 == child.stop()
        assert "Traceback" not in child.log


@pytest.fixture
def launching(tmp_path, model):
    """Flags and environment with which this Python has the stand-in for SGLang, which never gets ready."""
    doubles = Path(__file__).parents[1] / "doubles"
    environment = {
        "PYTHONPATH": f"{doubles / 'standin'}:{doubles}",
        "STANDIN_REPORT": str(tmp_path / "report.json"),
        "STANDIN_MODE": "ready",
        "TMPDIR": str(tmp_path),
    }
    return ("--sglang-python", sys.executable, "--model", model), environment


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
    environment |= {"STANDIN_MODE": "", "PYTHONPATH": f"{endless}:{environment['PYTHONPATH']}"}
    with serving(*flags, **environment) as child:
        wait_for(child, "is taken for sglang, because --engine")
        assert 0 == child.stop()
        assert "Traceback" not in child.log
