"""Where plugins come from: what installed distributions declare, also where one of them is damaged, and single files.

The standard library reads the files of every installed distribution to find an entry point, and gives up at the first
one that it cannot read.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from pathlib import Path, PurePath

from attrs import frozen

UNKNOWN = "unknown"


@frozen(kw_only=True)
class Source:
    """A plugin that may be loaded.

    Attributes:
        name: The entry point's name, or that of the file.
        distribution: The distribution that declares it, or the file's path.
        version: The distribution's version; ``file`` for a file.
        target: What is imported: ``package.module``, or the file's whole path. ``None`` where that cannot be read.
        load: Imports it, and raises whatever that raises.
        fault: Why it cannot be loaded at all, with the remedy; ``None`` when it may be tried.
    """

    name: str
    distribution: str
    version: str
    target: str | None
    load: Callable[[], object]
    fault: str | None = None


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


def normalised(distribution: str) -> str:
    """A distribution's name as packaging compares it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def folder_of(distribution: Distribution | None) -> str:
    """The name of the folder of a distribution's metadata, which has no public name."""
    return PurePath(str(getattr(distribution, "_path", UNKNOWN))).stem


def identity_of(distribution: Distribution | None) -> Identity:
    """A distribution's name and version, whatever state it is in."""
    if distribution is None:
        return Identity(UNKNOWN, UNKNOWN)
    try:
        # An interrupted installation may lack the METADATA file.
        return Identity(distribution.name or UNKNOWN, distribution.version or UNKNOWN)
    except Exception as error:  # noqa: BLE001 - depends on the damage and on Python's version
        name, _, version = folder_of(distribution).partition("-")
        return Identity(name, version or UNKNOWN, f"METADATA cannot be read: {type(error).__name__}: {error}")


def declared(group: str) -> list[Source]:
    """The plugins of an entry-point group. A distribution that cannot be read is among them, since it may have some."""
    try:
        return [entry_point_source(point) for point in entry_points(group=group) if not is_leftover(point.dist)]
    except Exception:  # noqa: BLE001 - as above; what it was is found out below, with the distribution's name
        return list(one_by_one(group))


def is_leftover(distribution: Distribution | None) -> bool:
    """Whether pip was interrupted while it removed this: it puts a ``~`` in the place of the first letter before."""
    return folder_of(distribution).startswith("~")


def one_by_one(group: str) -> Iterator[Source]:
    """The same, a distribution at a time: ten times slower."""
    seen = set()
    for distribution in distributions():
        identity = identity_of(distribution)
        name = normalised(identity.name)
        if is_leftover(distribution) or (name in seen and name != UNKNOWN):
            continue  # another of the name comes first on sys.path
        seen.add(name)
        try:
            points = distribution.entry_points.select(group=group)
        except Exception as error:  # noqa: BLE001 - as above
            fault = f"entry_points.txt cannot be read: {type(error).__name__}: {error}; reinstall {identity.name}"
            yield source_of(UNKNOWN, identity, None, lambda: None, fault)
            continue
        yield from map(entry_point_source, points)


def entry_point_source(point: EntryPoint) -> Source:
    """The plugin that an entry point names."""
    identity = identity_of(point.dist)
    fault = identity.fault and f"{identity.fault}; reinstall {identity.name}"
    if fault is None and not point.pattern.match(point.value):
        fault = f'{point.value}: the entry point names no module; write `{point.name} = "package.module"`'
    return source_of(point.name, identity, point.value, point.load, fault)


def source_of(
    name: str, identity: Identity, target: str | None, load: Callable[[], object], fault: str | None
) -> Source:
    """A plugin of a distribution."""
    return Source(
        name=name, distribution=identity.name, version=identity.version, target=target, load=load, fault=fault
    )


def file_source(path: str) -> Source:
    """The plugin that is one Python file."""
    whole = str(Path(path).resolve())

    def load() -> object:
        # Its path is its name as a module too: that shadows nothing, and two files may have one name.
        if whole in sys.modules:
            return sys.modules[whole]
        spec = importlib.util.spec_from_file_location(whole, whole)
        if spec is None or spec.loader is None:
            raise ValueError(f"a plugin's file ends in .py, found {path!r}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[whole] = module  # where the annotations of its classes are looked up
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[whole]
            raise
        return module

    fault = None if Path(path).is_file() else f"{path}: no such file; give the path of a Python file"
    return Source(name=Path(path).stem, distribution=path, version="file", target=whole, load=load, fault=fault)
