"""Secrets of a launched SGLang: it reads them from a file, and neither its environment nor its log shows them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import orjson

from openjev_core.settings import PREFIX

SHORTEST = 6
"""Characters of the shortest value that is hidden. A shorter one protects nothing, and would hide ordinary words."""
SHOWN = "[hidden]"
SECRET_ENDINGS = ("_TOKEN", "_KEY", "_SECRET", "_PASSWORD")
"""Endings of the names of environment variables whose values are hidden."""


def write_secrets(values: Mapping[str, str]) -> Path | None:
    """Write a config file for SGLang that only this user can read; ``None`` where there are no values."""
    if not values:
        return None
    handle, name = tempfile.mkstemp(prefix="openjev-", suffix=".yaml")
    with os.fdopen(handle, "wb") as file:
        # JSON is YAML.
        file.write(orjson.dumps({flag.removeprefix("--"): value for flag, value in values.items()}))
    return Path(name)


def delete(config: Path | None) -> None:
    """Delete the config file, if there is one."""
    if config is not None:
        config.unlink(missing_ok=True)


def child_environment(environ: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """SGLang's environment: the caller's with the changes, and without openjev's own variables, which hold keys."""
    kept = {name: value for name, value in environ.items() if not name.startswith(PREFIX) and name not in changes}
    return kept | {name: value for name, value in changes.items() if value is not None}


def hidden_values(secrets: Iterable[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values that no line may show: the secrets, and those of environment variables that are named like secrets.

    The longest come first, because one value may contain another.
    """
    named = [value for name, value in environment.items() if name.endswith(SECRET_ENDINGS)]
    return tuple(sorted({v for v in (*secrets, *named) if len(v) >= SHORTEST}, key=len, reverse=True))


def redacted(line: str, hidden: Sequence[str]) -> str:
    """The line with :data:`SHOWN` in place of each hidden value. ``hidden`` is as :func:`hidden_values` orders it."""
    for value in hidden:
        line = line.replace(value, SHOWN)
    return line
