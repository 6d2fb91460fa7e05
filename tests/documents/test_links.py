"""Every link between the project's pages leads to a file, and to a heading of it where it names one."""

from __future__ import annotations

import re

import pytest
from document_blocks import FENCED, ROOT

PAGES = [
    ROOT / name
    for name in (
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "openjev_core/plugins/guide.md",
        "tests/bench/README.md",
    )
] + sorted(ROOT.glob("examples/**/README.md"))
LINK = re.compile(r"\]\((?!https?:)([^)]+)\)")


def anchors(page):
    """The headings of a page, as they are linked to."""
    lines = FENCED.sub("", page.read_text("utf-8")).splitlines()
    headings = (line.lstrip("# ").lower() for line in lines if line.startswith("#"))
    return {re.sub(r"[^a-z0-9 -]", "", heading).replace(" ", "-") for heading in headings}


def broken(page, text):
    """The targets of a page's links that lead nowhere."""
    for target in LINK.findall(text):
        path, _, anchor = target.partition("#")
        found = page.parent / path if path else page
        if not found.exists() or (anchor and anchor not in anchors(found)):
            yield target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    assert [] == list(broken(page, page.read_text("utf-8")))


@pytest.mark.parametrize("target", ["#a-question-typo", "CONTRIBUTING.md#nothing", "NOTHING.md", "docs/"])
def test_one_that_leads_nowhere_is_found(target):
    assert [target] == list(broken(ROOT / "README.md", f"[x]({target}) and [y](CONTRIBUTING.md#a-question-type)"))
