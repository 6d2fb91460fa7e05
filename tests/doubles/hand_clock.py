"""A clock that a test moves by hand, in place of a module's ``time``."""

from __future__ import annotations

from attrs import define


@define
class HandClock:
    """Stands still between two moves.

    Attributes:
        now: Seconds since some moment.
    """

    now: float = 100.0

    def perf_counter(self):
        return self.now

    def monotonic(self):
        return self.now
