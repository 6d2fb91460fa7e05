"""What was used lately, kept up to a size in bytes, and what values take."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from types import FunctionType
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ENTRY_BYTES = 200
"""Upper bound on what one entry takes beside its key and value: a place in the mapping, and a pair."""


class Recent(Generic[K, V]):
    """A bounded memory; the least recently used entry goes first. Safe to use from several threads.

    Args:
        capacity: Upper bound on the sum of the sizes of what is kept.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._held = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def held(self) -> int:
        """The sum of the sizes of what is kept."""
        return self._held

    def get(self, key: K) -> V | None:
        """The value of ``key``; ``None`` when it is not kept."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def keep(self, key: K, value: V, size: int) -> None:
        """Keep ``value`` from now on, in the place of an earlier one; neither, where it alone is over the capacity."""
        with self._lock:
            _, freed = self._entries.pop(key, (None, 0))
            self._held -= freed
            if size > self._capacity:
                return
            self._entries[key] = value, size
            self._held += size
            while self._held > self._capacity:
                _, (_, freed) = self._entries.popitem(last=False)
                self._held -= freed


def bytes_of(*values: Any) -> int:
    """The bytes that values keep alive: theirs and those of everything that they refer to, each object once.

    Classes and functions do not count: modules keep them alive.
    """
    seen: set[int] = set()
    total = 0
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, (type, FunctionType)) or value is None:
            continue
        seen.add(id(value))
        total += sys.getsizeof(value)
        waiting.extend(_held_by(value))
    return total


def _held_by(value: Any) -> Iterable[Any]:
    """What a value refers to."""
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, (tuple, list, set, frozenset)):
        return value
    held = list(getattr(value, "__dict__", {}).values())
    for name in [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]:
        with suppress(AttributeError):
            # Not `getattr`, which would compute what attrs keeps of a cached property.
            held.append(object.__getattribute__(value, name))
    return held
