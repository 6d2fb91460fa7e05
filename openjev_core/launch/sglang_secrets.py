"""Secrets on their way to SGLang: in a file that it reads, out of its environment and of its log."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import orjson

from openjev_core.settings import PREFIX


def write_secrets(values: Mapping[str, str]) -> Path | None:
    """A config file for SGLang that only this user can read."""
    if not values:
        return None
    handle, name = tempfile.mkstemp(prefix="openjev-", suffix=".yaml")
    with os.fdopen(handle, "wb") as file:
        # JSON is YAML.
        file.write(orjson.dumps({flag.removeprefix("--"): value for flag, value in values.items()}))
    return Path(name)


def delete(config: Path | None) -> None:
    """SGLang has read it, or never will."""
    if config is not None:
        config.unlink(missing_ok=True)


def child_environment(environ: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """The caller's environment, with the changes, without openjev's own variables and with them its keys."""
    kept = {name: value for name, value in environ.items() if not name.startswith(PREFIX) and name not in changes}
    return kept | {name: value for name, value in changes.items() if value is not None}


def secret_values(environment: Mapping[str, str]) -> list[str]:
    """Values of variables that are named like secrets."""
    return [v for name, v in environment.items() if name.endswith(("_TOKEN", "_KEY", "_SECRET", "_PASSWORD"))]
