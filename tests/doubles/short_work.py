"""What a worker process may do in a test of the workers: end at once, or hang."""

from __future__ import annotations

import signal
import sys
import time


def one_fails(settings, sock, number):
    """The second worker ends with 3; the first would go on."""
    assert sock.fileno() > 0
    if number == 1:
        sys.exit(3)
    time.sleep(60)


def hangs(settings, sock, number):
    """Takes no notice of a stop. The second worker ends with 3, but only half a grace period too late."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60 if number != 1 else settings.grace_period * 1.5)
    sys.exit(3)
