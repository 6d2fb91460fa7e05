"""What starting the command costs, and that it can be called as it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).with_name("openjev")


def test_help_loads_no_library_of_the_engine_or_the_server():
    code = (
        "import sys, openjev_core.cli.app; "
        "print(sorted({'tokenizers', 'xllamacpp', 'httpx', 'aiohttp', 'hypercorn', 'jinja2', "
        "'huggingface_hub', 'rich', 'uvloop'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "[]" == result.stdout.strip()


def test_help_loads_nothing_that_it_does_not_print_with():
    code = (
        "import sys, openjev_core.cli.app as cli\n"
        "try: cli.app(['--help'])\n"
        "except SystemExit: print(sorted({'asyncio', 'rich', 'rich.console', 'aiohttp'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "[]" == result.stdout.splitlines()[-1]


def test_all_commands_fit_one_screen_by_what_they_are_for(openjev, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = openjev("--help").stdout.splitlines()
    assert len(lines) <= 32
    assert max(map(len, lines)) <= 80
    assert ["Options:", "Ask:", "Serve:", "Data:", "Plugins and settings:"] == [
        line for line in lines if line.endswith(":") and not line.startswith(" ")
    ]
    assert "..." not in "".join(lines[1:])


def test_every_command_of_openjev_has_a_line_that_is_not_cut(openjev):
    assert "..." not in openjev("plugins", "--help").stdout.partition("\n")[2]


def test_help_describes_a_commands_own_options_first_and_names_settings_that_seldom_matter(openjev, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = openjev("serve", "--help").stdout
    own, often, seldom = (shown.index(text) for text in ("--compat", "--connect", "--keep-alive"))
    assert own < often < seldom
    assert "seconds that a connection may idle" not in shown
    assert "address to listen on (OPENJEV_HOST; default:" in " ".join(shown.split())
    assert "--max-concurrent-requests" in shown.split()


@pytest.mark.parametrize(
    ("typed", "offered"), [("openjev ca", ["calibrate"]), ("openjev ask --con", ["--connect", "--confidence"])]
)
def test_completion(typed, offered):
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_OPENJEV_COMPLETE": "complete_bash"}
    result = subprocess.run(
        [SCRIPT], env={**os.environ, **words}, capture_output=True, text=True, check=False, timeout=60
    )
    assert offered == result.stdout.split()


def test_the_installed_script_runs():
    result = subprocess.run([SCRIPT, "--version"], capture_output=True, text=True, check=True, timeout=60)
    assert f"openjev {version('openjev')}" == result.stdout.strip()


def test_no_arguments_show_the_commands(openjev):
    result = openjev()
    for command in ("ask", "serve", "plugins", "schema", "settings"):
        assert f" {command} " in result.output


@pytest.mark.parametrize("command", [["schema"], ["settings"], ["plugins", "list", "--json"]])
def test_a_full_disk_under_the_output_is_one_line(command):
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run([SCRIPT, *command], stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert (1, b"openjev: the output cannot be written: No space left on device\n") == (
        result.returncode,
        result.stderr,
    )


def test_a_closed_standard_input_is_one_line():
    result = subprocess.run(["sh", "-c", 'exec "$0" ask - <&-', SCRIPT], capture_output=True, check=False, timeout=60)
    assert (2, b"openjev: standard input: cannot be read: it is closed\n") == (result.returncode, result.stderr)


def test_a_reader_that_goes_away_gets_no_traceback():
    process = subprocess.Popen([SCRIPT, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(60) in (0, 1)
    assert b"Traceback" not in errors
