"""How many threads the embedded engine takes."""

from __future__ import annotations

import os

import pytest

from openjev_core.backends.llamacpp.embedded import cpu_quota, default_threads


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Four logical CPUs on two cores; call it with those that the process may use, and its container's quota."""
    for cpu, siblings in enumerate(["0,2", "1,3", "0,2", "1,3"]):
        topology = tmp_path / "cpu" / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(siblings + "\n")
    (tmp_path / "cgroup").mkdir()

    def threads(usable, quota=None):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: usable, raising=False)
        if quota is not None:
            (tmp_path / "cgroup" / "cpu.max").write_text(quota)
        return default_threads(tmp_path / "cpu", tmp_path / "cgroup")

    return threads


@pytest.mark.parametrize(
    ("usable", "quota", "expected"),
    [
        ({0, 1, 2, 3}, None, 2),
        ({0, 2}, None, 1),
        ({0, 1, 2, 3}, "max 100000\n", 2),
        ({0, 1, 2, 3}, "150000 100000\n", 2),
        ({0, 1, 2, 3}, "50000 100000\n", 1),
        ({0, 1, 2, 3}, "nonsense", 2),
        ({4, 5, 6}, None, 3),
    ],
)
def test_threads_are_the_physical_cores_that_the_process_may_use(machine, usable, quota, expected):
    assert expected == machine(usable, quota)


def test_where_the_system_does_not_say_the_engine_decides(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert default_threads() is None


def test_a_machine_without_cgroups_has_no_quota(tmp_path):
    assert cpu_quota(tmp_path) is None
