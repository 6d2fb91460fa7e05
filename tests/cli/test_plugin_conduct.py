"""What a plugin prints, and threads that it leaves running, harm no command."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from openjev_process import OPENJEV, ServeProcess, clean_environment
from plugin_distribution import WORKING

PRINTING = WORKING.replace("@frozen", "print('at import')\n\n\n@frozen", 1)
PRINTING = PRINTING.replace(
    "def reduce(question, distributions):",
    "def reduce(*_):\n    print('while it reduces')\n    return Answer(heads=0.5)",
)
THREAD = "threading.Thread(target=time.sleep, args=(600,), name='a clock').start()"
LINGERING = WORKING.replace("@frozen", f"import threading, time\n\n{THREAD}\n\n\n@frozen", 1)
REQUEST = {"model": "jev-latest", "state": "", "questions": {"q": {"type": "coin", "instructions": "Which side?"}}}


def written(tmp_path, source):
    path = tmp_path / "plugin.py"
    path.write_text(source)
    return path


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("command", [("ask", "-", "--json"), ("plugins", "list", "--json"), ("schema",)])
def test_what_a_plugin_prints_stands_on_standard_error(openjev, tmp_path, monkeypatch, command):
    monkeypatch.setenv("OPENJEV_PLUGINS", str(written(tmp_path, PRINTING)))

    result = openjev(*command, input=json.dumps(REQUEST))

    assert 0 == result.exit_code, result.stderr
    assert isinstance(json.loads(result.stdout), (dict, list))
    assert "at import" in result.stderr
    assert ("while it reduces" in result.stderr) == (command[0] == "ask")


def test_a_plugin_that_leaves_a_thread_running_does_not_load_and_keeps_no_command(tmp_path):
    path = written(tmp_path, LINGERING)

    done = subprocess.run(
        [OPENJEV, "--plugin", path, "plugins", "list", "--json"],
        env=clean_environment(), capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    (row,) = [row for row in json.loads(done.stdout) if row["distribution"] == str(path)]
    assert "failed" == row["status"]
    assert (
        f"{path}: it left threads running that keep the process from ending: a clock; "
        "start them with daemon=True, or when they are needed"
    ) == row["cause"]


def test_a_server_ends_although_a_plugin_left_a_thread_running(tmp_path):
    server = ServeProcess("--skip-failed-plugins", OPENJEV_PLUGINS=str(written(tmp_path, LINGERING)))
    server.wait_until_it_listens()

    assert 0 == server.stop()
    assert "it left threads running" in server.log


ENDINGS = {
    "pass": (0, ""),
    "sys.exit(3)": (3, ""),
    "sys.exit()": (0, ""),
    "sys.exit('no')": (1, "no"),
    "raise RuntimeError('why')": (1, "RuntimeError: why"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_process_whose_threads_are_left_behind_ends_as_it_would_have(ending):
    status, said = ENDINGS[ending]
    program = "import sys, threading, time\nfrom openjev_core.ending import leave_threads_behind\n"
    program += f"{THREAD}\nprint('whole')\ntry:\n    {ending}\nfinally:\n    leave_threads_behind()\n"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert (status, "whole\n") == (done.returncode, done.stdout)
    assert said in done.stderr
