"""CPU that importing openjev and starting its command line take, in milliseconds, the interpreter's start included.

    uv run python tests/bench/start_up.py

Every command runs once before, which compiles what it imports to bytecode, as any first run does.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROUNDS = 11
OPENJEV = str(Path(sys.executable).with_name("openjev"))
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import openjev_core": [sys.executable, "-c", "import openjev_core"],
    "from openjev_core import QuestionType": [sys.executable, "-c", "from openjev_core import QuestionType"],
    "openjev --help": [OPENJEV, "--help"],
    "openjev ask --help": [OPENJEV, "ask", "--help"],
}
TARGETS = {"import openjev_core": 150, "openjev --help": 300}


def cpu_of(command, environment):
    """Seconds of CPU that a process takes, in user and system mode."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    taken = {name: [] for name in COMMANDS}
    with TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(1 + ROUNDS):
            for name, command in COMMANDS.items():
                seconds = cpu_of(command, environment)
                if number:
                    taken[name].append(1000 * seconds)
    print(f"| command | CPU in ms, median of {ROUNDS} | least | most | at most |\n| --- | --- | --- | --- | --- |")
    for name, times in taken.items():
        figures = [statistics.median(times), min(times), max(times)]
        print(f"| `{name}` |", *(f"{value:.0f} |" for value in figures), TARGETS.get(name, ""), "|")


if __name__ == "__main__":
    main()
