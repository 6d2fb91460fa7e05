"""Prompts as snapshot files."""

from __future__ import annotations

from typing import Any

from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode


class PromptFile(SingleFileSnapshotExtension):
    """One ``.txt`` file per snapshot. Binary: text mode would fold line breaks, which are part of a prompt."""

    _write_mode = WriteMode.BINARY
    file_extension = "txt"

    def serialize(self, data: Any, **_: Any) -> bytes:
        """The prompt's bytes."""
        return data.encode() if isinstance(data, str) else bytes(data)
