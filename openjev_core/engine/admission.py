"""How many evaluations run at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from openjev_core.errors import AtCapacity


class Admission:
    """Counts the evaluations in flight and turns away what is over the limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.in_flight = 0
        self.branches_in_flight = 0

    @contextmanager
    def admit(self) -> Iterator[None]:
        """Hold one place for the length of the block.

        Raises:
            AtCapacity: There is none.
        """
        if self.in_flight >= self._limit:
            raise AtCapacity(
                f"{self.in_flight} evaluations are running, as many as are admitted at once "
                f"(max_concurrent_requests {self._limit}); try again shortly"
            )
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    @contextmanager
    def reading(self, branches: int) -> Iterator[None]:
        """Count branches as being read for the length of the block."""
        self.branches_in_flight += branches
        try:
            yield
        finally:
            self.branches_in_flight -= branches
