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
    assert ("while it reduces" in result.stderr) == (command[0] != "plugins")


def test_what_a_plugin_prints_stands_between_no_messages_to_an_agent(tmp_path):
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    agent = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    tool = {"name": "ask", "arguments": {"state": "", "questions": REQUEST["questions"]}}
    command = [OPENJEV, "--plugin", written(tmp_path, PRINTING), "mcp"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=clean_environment(),
    ) as server:  # fmt: skip
        answers = []
        for number, (method, params) in enumerate([("initialize", agent), ("tools/call", tool)]):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            answers.append(json.loads(server.stdout.readline()))
        rest, errors = server.communicate(timeout=60)

    assert [0, 1] == [answer["id"] for answer in answers]
    assert {"type": "coin", "heads": 0.5} == answers[1]["result"]["structuredContent"]["answers"]["q"]
    assert "" == rest
    assert "at import" in errors
    assert "while it reduces" in errors


def test_a_command_ends_although_a_plugin_left_a_thread_running(tmp_path):
    done = subprocess.run(
        [OPENJEV, "--plugin", written(tmp_path, LINGERING), "plugins", "list", "--json"],
        env=clean_environment(), capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert "coin" in {row["name"] for row in json.loads(done.stdout)}


def test_a_server_ends_although_a_plugin_left_a_thread_running(tmp_path):
    server = ServeProcess(OPENJEV_PLUGINS=str(written(tmp_path, LINGERING)))
    server.wait_until_it_listens()

    assert 0 == server.stop()
    assert f"coin ({tmp_path}/plugin.py)" in server.log


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
