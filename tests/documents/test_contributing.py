"""What CONTRIBUTING.md says is so."""

from __future__ import annotations

import re

from document_blocks import ROOT, blocks


def test_every_check_runs_in_ci_as_it_is_written():
    steps = (ROOT / ".ci" / "run").read_text("utf-8")
    checks = blocks("CONTRIBUTING.md", "sh")[0].splitlines()
    assert 7 == len(checks)
    for command in checks:
        assert f"step {command}\n" in steps or f"suite {command}\n" in steps


def test_every_place_that_is_named_exists():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+(?:\.py|/))`", text))
    assert len(named) > 20
    missing = {n for n in named if not any((base / n).exists() for base in (ROOT, ROOT / "openjev_core"))}
    assert set() == missing
