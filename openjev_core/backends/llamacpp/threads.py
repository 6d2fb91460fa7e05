"""How many threads a prefill should have."""

from __future__ import annotations

import os
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")
CGROUP = Path("/sys/fs/cgroup")


def default_threads(cpus: Path = CPUS, cgroup: Path = CGROUP) -> int | None:
    """The physical cores that this process may use, or ``None`` where Linux's files do not say.

    Two threads on one core only wait for each other. llama.cpp counts the machine's cores itself, but does not know
    what a container or an affinity mask leaves of them.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    usable = os.sched_getaffinity(0)
    cores = set()
    for cpu in usable:
        siblings = cpus / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        try:
            cores.add(siblings.read_text())
        except OSError:
            return min(len(usable), cpu_quota(cgroup) or len(usable))
    return min(len(cores), cpu_quota(cgroup) or len(cores))


def cpu_quota(cgroup: Path) -> int | None:
    """The CPUs that a container's quota amounts to, rounded up; ``None`` without a quota."""
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else max(1, -(-int(quota) // int(period)))
