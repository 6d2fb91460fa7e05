"""Opening an engine from settings: in this process, or on a server that runs already."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from openjev_core.address import Address
from openjev_core.engine.discovery import find_engine
from openjev_core.engine.engine import Engine, engine_for
from openjev_core.engine_type import EngineStart, EngineType, Progress
from openjev_core.errors import OpenJevError, StartupError
from openjev_core.own_settings import own_settings
from openjev_core.plugins.registry import Registry, load_registry
from openjev_core.reader import Model
from openjev_core.settings import Settings


@asynccontextmanager
async def open_engine(
    settings: Settings | None = None,
    *,
    registry: Registry | None = None,
    progress: Progress = lambda _: None,
) -> AsyncIterator[Engine]:
    """An engine, ready to evaluate. The end of the block closes it.

    Args:
        settings: What to run with; the defaults, and so the embedded demo model, when ``None``.
        registry: The question types, and the engines where it has any; the installed ones when ``None``.
        progress: Takes lines on what the start waits for and what it has found.

    Raises:
        StartupError: The model, its tokenizer, its template or the backend will not do; says why and what to change.
    """
    settings = settings or Settings()
    registry = registry or load_registry(settings.disable_plugins, settings.plugins)
    if not registry.types:
        raise StartupError(
            "no question types are installed; `openjev plugins list` shows what became of each plugin "
            "(is openjev itself installed, or only on sys.path?)"
        )
    async with AsyncExitStack() as stack:
        model = await open_model(settings, registry, progress, stack)
        engine = engine_for(model, settings, registry)
        try:
            yield engine
        finally:
            await engine.aclose()


async def open_model(settings: Settings, registry: Registry, progress: Progress, stack: AsyncExitStack) -> Model:
    """Find the engine that the settings ask for, and open it.

    Args:
        settings: What to open.
        registry: Its engines; the installed ones where it has none.
        progress: Takes lines for a person.
        stack: Closes the model.

    Raises:
        StartupError: It cannot be opened, or not within ``startup_timeout``.
    """
    engines = registry.engines or load_registry(settings.disable_plugins, settings.plugins).engines
    what = "connect"
    try:
        async with asyncio.timeout(settings.startup_timeout) as limit, AsyncExitStack() as asking:
            address = None
            if settings.connect is not None:
                address = await asking.enter_async_context(Address(settings.connect, settings.backend_api_key))
            engine_type = await find_engine(settings, engines, address, progress)
            what = f"engine {engine_type.name}"
            own = own_settings(engine_type, settings.own)
            start = EngineStart(settings=settings, own=own, labels=registry.labels, address=address, progress=progress)
            return await opened(engine_type, start, stack)
    except TimeoutError:
        if not limit.expired():
            raise
        raise StartupError(
            f"{what}: expected it to be ready within {settings.startup_timeout:g} s, found it still starting; "
            "OPENJEV_STARTUP_TIMEOUT gives it longer"
        ) from None


async def opened(engine_type: EngineType, start: EngineStart, stack: AsyncExitStack) -> Model:
    """Open an engine. Whatever is wrong with its code becomes an error that names it.

    Raises:
        StartupError: It does not open, or gives something else than a model.
    """
    try:
        model: object = await stack.enter_async_context(engine_type.open(start))
    except OpenJevError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise StartupError(
            f"engine {engine_type.name}: open raised {type(error).__name__}: {error} "
            f"({Path(frame.filename).name}:{frame.lineno}); this is a fault of the plugin"
        ) from error
    if not isinstance(model, Model):
        raise StartupError(
            f"engine {engine_type.name}: open gave a {type(model).__name__}; it has to yield an openjev_core.Model"
        )
    return model
