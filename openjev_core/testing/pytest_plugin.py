"""Fixtures for tests of question types. Loaded by pytest wherever openjev is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from openjev_core.engine.engine import Engine

# Imports stand inside the fixtures: pytest loads this module in every project that has openjev installed.


@pytest.fixture
def openjev_engine() -> Callable[..., Engine]:
    """Makes engines that answer by script; see :func:`openjev_core.testing.scripted_engine`."""
    from openjev_core.testing.scripted import scripted_engine  # noqa: PLC0415

    return scripted_engine


@pytest.fixture
def openjev_server() -> Iterator[Callable[..., str]]:
    """Serves question types over HTTP, answered by script; takes what ``openjev_engine`` takes, gives a base URL.

    The servers stop when the test ends.
    """
    from openjev_core.testing.live import live_server  # noqa: PLC0415
    from openjev_core.testing.scripted import scripted_engine  # noqa: PLC0415

    with ExitStack() as servers:

        def serve(*types: Any, **options: Any) -> str:
            return servers.enter_context(live_server(lambda: scripted_engine(*types, **options)))

        yield serve


@pytest.fixture
def prompt_snapshot(snapshot: Any) -> Any:
    """A snapshot in syrupy's sense, kept as one text file per prompt, byte for byte."""
    from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode  # noqa: PLC0415

    class PromptFile(SingleFileSnapshotExtension):
        _write_mode = WriteMode.BINARY  # text mode would fold line breaks, which are part of a prompt
        file_extension = "txt"

        def serialize(self, data: Any, **_: Any) -> bytes:
            return data.encode() if isinstance(data, str) else bytes(data)

    return snapshot.use_extension(PromptFile)
