"""What a worker process may do in a test of the workers: end at once."""

from __future__ import annotations

import sys
import time


def one_fails(settings, sock, number):
    """The second worker ends with 3; the first would go on."""
    assert sock.fileno() > 0
    if number == 1:
        sys.exit(3)
    time.sleep(60)
