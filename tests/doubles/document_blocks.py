"""The fenced blocks and commands of a Markdown document."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(name, language):
    """The fenced blocks of one language."""
    text = (ROOT / name).read_text("utf-8")
    return [body for found, body in FENCED.findall(text) if found == language]


def commands(name):
    """Every shell command, lines that end in a backslash joined with the next."""
    text = "".join(blocks(name, "sh")).replace("\\\n", " ")
    return [re.sub(r"  +", " ", line) for line in text.splitlines() if line.strip()]
