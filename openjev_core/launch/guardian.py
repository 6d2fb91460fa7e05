"""Runs SGLang and makes sure that none of its processes outlives the API.

The guardian is a process of its own, because it has to be there when the API is killed. It is started as a script in
isolated mode and uses the standard library alone. The API holds the other end of its standard input. When the API
writes ``stop`` or closes its end, or SGLang itself ends, the guardian kills every process that SGLang started,
whatever session or process group it moved to:

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
"""Seconds to wait for killed processes: one that is inside a driver call dies late."""
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LINUX = sys.platform == "linux"


def main(arguments: list[str]) -> int:
    """Run one command and guard it until it ends; returns the exit status."""
    marker, grace, file, *command = arguments
    # A terminal or a supervisor signals the API, and the API then writes `stop`.
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
    """Prepare SGLang's process, from inside it: default signals, and SIGKILL when the guardian is gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def prctl(option: int, value: int) -> None:
    """Call Linux's ``prctl``. Does nothing elsewhere: SGLang runs on Linux alone."""
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def wait_for_order_or_end(child: subprocess.Popen[bytes]) -> bool:
    """Wait; returns True for an orderly stop, False when the API is gone or SGLang has ended."""
    while child.poll() is None:
        readable, _, _ = select.select([0], [], [], POLL)
        if readable:
            return os.read(0, len(STOP)) == STOP
        reap_orphans(child.pid)
    return False


def reap_orphans(child: int) -> None:
    """Reap adopted processes that have ended, but not SGLang: :class:`subprocess.Popen` reads its status."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid == child:
            return
        os.waitpid(ended.si_pid, os.WNOHANG)


def kill_all(find: Callable[[], Iterable[int]], *, reap: bool = False) -> list[int]:
    """Kill what ``find`` finds until it finds nothing. Several rounds are needed: a dying process may start others.

    Args:
        find: Process ids.
        reap: Reap every child of this process that has ended. For the guardian, whose children are all SGLang's.

    Returns:
        The process ids that are left after :data:`KILL_SECONDS`.
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
    """The ids of all living processes below ``ancestor``."""
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
    """The ids of this user's living processes that have the marker in their environment."""
    entry = f"{MARKER}={marker}".encode()
    found = set()
    for pid in process_ids():
        with contextlib.suppress(OSError):
            if entry in read(f"/proc/{pid}/environ").split(b"\0"):
                found.add(pid)
    return found


def process_ids() -> list[int]:
    """The ids of all processes; none where there is no ``/proc``."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if LINUX else []  # noqa: PTH208 - as above


def read(path: str) -> bytes:
    """The content of a file of ``/proc``."""
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        return file.read()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
