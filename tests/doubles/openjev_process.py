"""``openjev`` as a child process: started, waited for until it serves, stopped."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

OPENJEV = Path(sys.executable).with_name("openjev")
LISTENING = re.compile(r"listening on (https?://\S+);")
PATIENCE = 60


def clean_environment(**more):
    """This process's environment without anyone's settings, and without colours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENJEV_")}
    return {**kept, "NO_COLOR": "1", **more}


class ServeProcess:
    """A running ``openjev serve``.

    Attributes:
        process: The child.
        lines: What it wrote to standard error so far.
        url: Where it listens.
    """

    def __init__(self, *args, **environment):
        self.process = subprocess.Popen(
            [OPENJEV, "serve", "--port", "0", *map(str, args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment(**environment),
        )
        self.lines = []
        self.url = None
        self._settled = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            if found := LISTENING.search(line):
                self.url = found.group(1)
                self._settled.set()
        self._settled.set()

    @property
    def log(self):
        """Standard error, whole."""
        return "\n".join(self.lines)

    def wait_until_it_listens(self):
        assert self._settled.wait(PATIENCE), self.log
        assert self.url, self.log
        return self.url

    def stop(self, number=signal.SIGTERM):
        """Send a signal; returns the exit status."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self):
        """Wait for its end; returns the exit status."""
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return status


@contextmanager
def serving(*args, **environment):
    """``openjev serve`` on a free port; killed at the end if it still runs."""
    child = ServeProcess(*args, **environment)
    try:
        yield child
    finally:
        if child.process.poll() is None:
            child.process.kill()
            child.process.wait()
        child.process.stdout.close()
