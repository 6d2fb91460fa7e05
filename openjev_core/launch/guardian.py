"""Runs SGLang and makes sure that nothing of it outlives the API.

A process of its own, started as a script in isolated mode with the standard library alone: it has to be there when the
API is killed. The API holds the other end of its standard input. ``stop`` on it, or a closed parent, or the end of
SGLang itself, and every process that SGLang started is killed, whatever session or process group it moved to:

- the guardian is the subreaper, so orphans become its children and are found below it;
- SGLang's processes carry a marker in their environment, so the API finds them even when the guardian was killed;
- SGLang itself gets SIGKILL from the kernel when the guardian dies, and its workers do when SGLang dies.

Usage: ``guardian.py MARKER GRACE_SECONDS FILE_TO_DELETE|- COMMAND...``; the exit status is SGLang's, or 128 and the
signal that ended it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable

MARKER = "OPENJEV_GUARDED"
STOP = b"stop\n"
SIGNAL_BASE = 128
"""Exit statuses above this name a signal, as a shell's do."""
POLL = 0.2
"""Seconds between looks at SGLang's process."""
KILL_SECONDS = 20.0
"""How long killed processes are waited for: one in a driver call dies late."""
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LINUX = sys.platform == "linux"


def main(arguments: list[str]) -> int:
    """Guard one command to its end."""
    marker, grace, file, *command = arguments
    # A terminal's or a supervisor's signal goes to the API, which then says `stop`.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = subprocess.Popen(  # noqa: S603 - the command that the operator configured
        command,
        stdin=subprocess.DEVNULL,
        env={**os.environ, MARKER: marker},
        start_new_session=True,
        preexec_fn=bind_to_guardian,  # noqa: PLW1509 - there are no threads here
    )
    try:
        if wait_for_order_or_end(child):
            with contextlib.suppress(ProcessLookupError):
                child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(float(grace))
    finally:
        if child.poll() is None:
            child.kill()
        kill_all(lambda: {*descendants(os.getpid()), *marked(marker)}, reap=True)
        code = child.wait()
        if file != "-":
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file)  # noqa: PTH108 - no import beyond what is needed
    return code if code >= 0 else SIGNAL_BASE - code


def bind_to_guardian() -> None:
    """In SGLang's process, before it begins: default signals, and SIGKILL when the guardian is gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def prctl(option: int, value: int) -> None:
    """Linux's ``prctl``; elsewhere nothing, and SGLang runs on Linux alone."""
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def wait_for_order_or_end(child: subprocess.Popen[bytes]) -> bool:
    """True for an orderly stop; False when the API is gone or SGLang has ended."""
    while child.poll() is None:
        readable, _, _ = select.select([0], [], [], POLL)
        if readable:
            return os.read(0, len(STOP)) == STOP
        reap_orphans(child.pid)
    return False


def reap_orphans(child: int) -> None:
    """Collect adopted processes that have ended; SGLang's own status is left for :class:`subprocess.Popen`."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid == child:
            return
        os.waitpid(ended.si_pid, os.WNOHANG)


def kill_all(find: Callable[[], Iterable[int]], *, reap: bool = False) -> list[int]:
    """Kill what ``find`` finds until it finds nothing: what is being killed may still start more.

    Args:
        find: Process ids.
        reap: Collect every child of this process that has ended: for the guardian, whose children are all SGLang's.

    Returns:
        What is left after :data:`KILL_SECONDS`.
    """
    end = time.monotonic() + KILL_SECONDS
    while (found := sorted(find())) and time.monotonic() < end:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while reap and os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.05)
    return found


def descendants(ancestor: int) -> set[int]:
    """Every living process below ``ancestor``."""
    children: dict[int, list[int]] = {}
    for pid in process_ids():
        with contextlib.suppress(OSError, ValueError, IndexError):
            # pid (name) state parent ...; the name may hold spaces and parentheses.
            state, parent = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[:2]
            if state not in (b"Z", b"X"):
                children.setdefault(int(parent), []).append(pid)
    found: set[int] = set()
    queue = [ancestor]
    while queue:
        below = [pid for pid in children.get(queue.pop(), []) if pid not in found]
        found.update(below)
        queue.extend(below)
    return found


def marked(marker: str) -> set[int]:
    """Every living process of this user that was started with the marker in its environment."""
    entry = f"{MARKER}={marker}".encode()
    found = set()
    for pid in process_ids():
        with contextlib.suppress(OSError):
            if entry in read(f"/proc/{pid}/environ").split(b"\0"):
                found.add(pid)
    return found


def process_ids() -> list[int]:
    """All of them, where there is a ``/proc``."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if LINUX else []  # noqa: PTH208 - as above


def read(path: str) -> bytes:
    """A file of ``/proc``."""
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        return file.read()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
