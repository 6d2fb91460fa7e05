"""The public conformance suite against the live server, without a key and with one."""

from __future__ import annotations

import pytest
from jevcompat.runner import run
from live_server import live_server

UNTESTABLE = {"errors.shape"}
"""Only exercised by servers that refuse an unknown model with something else than the contract's 422."""


@pytest.fixture(scope="module")
def reports():
    found = {}
    for key in (None, "a-key"):
        with live_server(max_answers=255, confidence="jev", api_key=(key,) if key else ()) as running:
            found[key] = run(running.url, key=key, timeout=60)
    return found


@pytest.mark.parametrize("key", [None, "a-key"])
def test_the_server_conforms(reports, key):
    report = reports[key]
    assert [] == [(r.id, [f.message for f in r.findings]) for r in report.results if r.status == "fail"]
    assert "conformant" == report.verdict


def test_each_requirement_is_tested_in_one_run_or_the_other(reports):
    tested = {result.id for report in reports.values() for result in report.results if result.status == "pass"}
    required = {result.id for result in reports[None].results}
    assert UNTESTABLE == required - tested
