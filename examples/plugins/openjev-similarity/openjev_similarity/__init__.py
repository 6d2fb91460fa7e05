"""Similarity: an engine that reads an option by how close its words lie to the state's, and prompts no model.

This module loads whenever a command of openjev starts, so it imports nothing that the engine needs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from openjev_core import EngineStart, EngineType, Model, hookimpl


@asynccontextmanager
async def open_similarity(start: EngineStart) -> AsyncIterator[Model]:
    """Load the sentence model.

    Raises:
        StartupError: The settings name a model, and this engine has one of its own.
    """
    from openjev_similarity.engine import similarity_model  # noqa: PLC0415 - slow to import

    yield await similarity_model(start)


@hookimpl
def openjev_engines() -> Sequence[EngineType]:
    """Register the engine."""
    summary = "Options by the cosine of sentence embeddings (MiniLM), in this process."
    return [EngineType(name="similarity", summary=summary, api=1, open=open_similarity)]
