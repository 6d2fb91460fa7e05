"""``openjev serve --sglang-python``: SGLang and the API start, serve and end together."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import httpx
import pytest
from openjev_process import serving
from tiny_tokenizer import write_tiny_tokenizer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="SGLang runs on Linux")

DOUBLES = Path(__file__).parents[1] / "doubles"
REQUEST = {"model": "jev-latest", "state": "A.", "questions": {"q": {"type": "noul", "instructions": "Is it?"}}}


@pytest.fixture
def standin(tmp_path):
    """Flags and environment with which this Python has the stand-in for SGLang."""
    tokenizer = write_tiny_tokenizer(tmp_path / "tiny")
    report = tmp_path / "report.json"
    environment = {
        "PYTHONPATH": f"{DOUBLES / 'standin'}:{DOUBLES}",
        "STANDIN_REPORT": str(report),
        "TMPDIR": str(tmp_path),
    }
    flags = ("--sglang-python", sys.executable, "--model", tokenizer, "--served-model-name", "Mine-1")
    return flags, environment, lambda: json.loads(report.read_text())


def gone(pids):
    def alive(pid):
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
        except OSError:
            return False

    deadline = time.monotonic() + 20
    while any(alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_served_and_stopped_together(standin):
    flags, environment, report = standin
    with serving(*flags, "--", "--tp-size", "2", **environment) as child:
        url = child.wait_until_it_listens()
        assert "Mine-1" == httpx.post(f"{url}/v1/systemone", json=REQUEST, timeout=30).json()["model"]
        assert 0 == child.stop()
    assert ["--tp-size", "2"] == report()["argv"][-2:]
    assert gone(report()["pids"].values())
    assert "SGLang is ready after" in child.log


def test_the_end_of_sglang_is_the_end_of_the_server(standin):
    flags, environment, report = standin
    with serving(*flags, **environment) as child:
        child.wait_until_it_listens()
        os.kill(report()["pids"]["main"], signal.SIGKILL)
        assert 1 == child.ended()
    assert any("openjev: SGLang ended, and this server with it: SGLang was killed by SIGKILL" in x for x in child.lines)
    assert gone(report()["pids"].values())


def test_a_refused_flag_is_told_before_anything_starts(standin):
    flags, environment, _ = standin
    with serving(*flags, "--", "--disable-radix-cache", **environment) as child:
        assert 2 == child.ended()
    assert child.lines[-1].startswith("openjev: --disable-radix-cache cannot be passed to SGLang")
    assert not Path(environment["STANDIN_REPORT"]).exists()
