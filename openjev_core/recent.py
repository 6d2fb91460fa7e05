"""What was used lately, kept up to a size."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A bounded memory; the least recently used goes first. Safe to use from several threads.

    Args:
        capacity: The sum of the sizes of what is kept.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._held = 0
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        """The value of ``key``, if it is kept."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def keep(self, key: K, value: V, size: int) -> None:
        """Keep ``value`` from now on, unless it alone is more than is kept, or ``key`` has one already."""
        if size > self._capacity:
            return
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = value, size
            self._held += size
            while self._held > self._capacity:
                _, (_, freed) = self._kept.popitem(last=False)
                self._held -= freed
