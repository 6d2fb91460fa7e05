"""llama.cpp as two engines: in this process, and as a llama-server that runs already.

Loaded whenever a command starts, so it imports nothing of either.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from openjev_core.address import Address
from openjev_core.engine_type import EngineStart, EngineType
from openjev_core.errors import SettingsError
from openjev_core.plugins.hookspecs import hookimpl
from openjev_core.reader import Model

PAGE = "/props"
OK, LOADING = 200, 503


async def recognise(address: Address) -> str | None:
    """The page on which a llama-server says what it has loaded, or that it is loading."""
    status, page = await address.page(PAGE)
    error = page.get("error")
    loading = status == LOADING and isinstance(error, dict) and error.get("type") == "unavailable_error"
    if loading or (status == OK and isinstance(page.get("default_generation_settings"), dict)):
        return f"GET {PAGE}"
    return None


@asynccontextmanager
async def open_here(start: EngineStart) -> AsyncIterator[Model]:
    """A model on llama.cpp: in this process, or on the llama-server at the start's address.

    Raises:
        StartupError: The model cannot be had or loaded, or the server does not answer as it should.
        SettingsError: Several workers would share a llama-server.
    """
    from openjev_core.backends.llamacpp.model import open_llamacpp  # noqa: PLC0415 - slow to import
    from openjev_core.prompts.model import prompt_model  # noqa: PLC0415 - the same

    if start.address is not None and start.settings.workers > 1:
        raise SettingsError(
            f"OPENJEV_WORKERS: expected 1 with a llama-server, found {start.settings.workers}; only an SGLang is "
            "shared by several workers"
        )
    async with open_llamacpp(start.settings, start.progress) as loaded:
        yield prompt_model(loaded, start.settings, start.labels)


@hookimpl
def openjev_engines() -> Sequence[EngineType]:
    """Register both."""
    return [
        EngineType(name="llama.cpp", summary="A GGUF model in this process; the default.", api=1, open=open_here),
        EngineType(name="llama-server", summary="A running llama-server.", api=1, open=open_here, recognise=recognise),
    ]
