"""Measure what a beam costs in accuracy: a tree of 64 leaves, each with one labelled text.

    PYTHONPATH=examples/plugins/openjev-taxonomy uv run python tests/bench/taxonomy.py

On the embedded demo model; ``OPENJEV_*`` variables name another. Each text is asked about as a flat choice between all
leaves, and as a taxonomy with beams from 1 to the whole tree. The table goes to results/taxonomy.md.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

from openjev_taxonomy import TAXONOMY

from openjev_core import load_registry, load_settings, open_engine, registry_of

ROOT = Path(__file__).parents[2]
CATALOGUE = ROOT / "examples" / "plugins" / "openjev-taxonomy" / "catalogue.json"
RESULT = Path(__file__).parent / "results" / "taxonomy.md"
STEP = " > "
BEAMS = (1, 2, 3, 4, 16)
HEAD = """| way | reads | right leaf | right second level | right first level | seconds a text |
| --- | --- | --- | --- | --- | --- |"""


def path_in(answer: dict[str, Any]) -> list[str]:
    """The leaf that was answered, as names from the top."""
    return answer["choice"].split(STEP) if answer["type"] == "choice" else answer["path"]


async def main() -> None:
    """Ask, and write the table."""
    tree = json.loads(CATALOGUE.read_text("utf-8"))
    rows = [
        (text, [first, second, leaf])
        for first, parts in tree.items()
        for second, leaves in parts.items()
        for leaf, text in leaves.items()
    ]
    criteria = {
        first: {"children": {second: {"children": dict.fromkeys(leaves)} for second, leaves in parts.items()}}
        for first, parts in tree.items()
    }
    asked = {"instructions": "Which category does the text belong to?"}
    ways = {"flat choice": {**asked, "type": "choice", "criteria": {STEP.join(path): None for _, path in rows}}}
    for beam in BEAMS:
        ways[f"beam {beam}"] = {**asked, "type": "taxonomy", "criteria": criteria, "beam": beam}
    lines = [HEAD]
    registry = registry_of(load_registry().types["choice"], TAXONOMY)
    async with open_engine(load_settings(os.environ).settings, registry=registry) as engine:
        for name, question in ways.items():
            started, reads, right = time.perf_counter(), 0, [0, 0, 0]
            for text, path in rows:
                evaluation = await engine.evaluate(state=text, questions={"q": question})
                found = path_in(dict(evaluation.answers["q"]))
                reads += evaluation.usage.branches
                right = [count + (found[: n + 1] == path[: n + 1]) for n, count in enumerate(right)]
            seconds = (time.perf_counter() - started) / len(rows)
            shares = " | ".join(f"{count} of {len(rows)}" for count in reversed(right))
            lines.append(f"| {name} | {reads / len(rows):.0f} | {shares} | {seconds:.2f} |")
            print(lines[-1], flush=True)
        model = engine.model.public_name
    RESULT.write_text(f"# What a beam costs\n\nBy `tests/bench/taxonomy.py`, on {model}.\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
