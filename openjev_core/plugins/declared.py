"""What installed distributions declare, also where one of them is damaged.

The standard library reads the files of every installed distribution to find an entry point, and gives up at the first
one that it cannot read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from pathlib import PurePath

from attrs import frozen

UNKNOWN = "unknown"


@frozen
class Identity:
    """A distribution's name and version.

    Attributes:
        name: As its metadata has it; from its folder's name where that cannot be read.
        version: From the same place as the name.
        fault: Why its metadata cannot be read; ``None`` when it can.
    """

    name: str
    version: str
    fault: str | None = None


@frozen
class Unreadable:
    """A distribution that may declare plugins and whose ``entry_points.txt`` cannot be read."""

    identity: Identity
    fault: str


def normalised(distribution: str) -> str:
    """A distribution's name as packaging compares it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def identity_of(distribution: Distribution | None) -> Identity:
    """A distribution's name and version, whatever state it is in."""
    if distribution is None:
        return Identity(UNKNOWN, UNKNOWN)
    try:
        # An interrupted installation may lack the METADATA file.
        return Identity(distribution.name or UNKNOWN, distribution.version or UNKNOWN)
    except Exception as error:  # noqa: BLE001 - depends on the damage and on Python's version
        # The folder has no public name.
        folder = PurePath(str(getattr(distribution, "_path", UNKNOWN))).stem
        name, _, version = folder.partition("-")
        return Identity(name, version or UNKNOWN, f"METADATA cannot be read: {type(error).__name__}: {error}")


def declared(group: str) -> list[EntryPoint | Unreadable]:
    """The entry points of a group, and the distributions that may have some and cannot be read."""
    try:
        return list(entry_points(group=group))
    except Exception:  # noqa: BLE001 - as above; what it was is found out below, with the distribution's name
        return list(one_by_one(group))


def one_by_one(group: str) -> Iterator[EntryPoint | Unreadable]:
    """The same, a distribution at a time: ten times slower."""
    seen = set()
    for distribution in distributions():
        identity = identity_of(distribution)
        name = normalised(identity.name)
        if name in seen and name != UNKNOWN:
            continue  # another of the name comes first on sys.path
        seen.add(name)
        try:
            yield from distribution.entry_points.select(group=group)
        except Exception as error:  # noqa: BLE001 - as above
            fault = f"entry_points.txt cannot be read: {type(error).__name__}: {error}; reinstall {identity.name}"
            yield Unreadable(identity, fault)
