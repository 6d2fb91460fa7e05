"""Opening an engine from settings: which model, over which backend."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from openjev_core.backends.protocol import LoadedModel
from openjev_core.engine.engine import Engine, engine_for
from openjev_core.errors import StartupError
from openjev_core.plugins.registry import Registry, load_registry
from openjev_core.settings import Settings

Progress = Callable[[str], None]
"""Takes one line for a person on what is being waited for."""


@asynccontextmanager
async def open_engine(
    settings: Settings | None = None,
    *,
    registry: Registry | None = None,
    progress: Progress = lambda _: None,
) -> AsyncIterator[Engine]:
    """An engine, ready to evaluate; closed at the end of the block.

    Args:
        settings: What to run with; the defaults, and so the embedded demo model, when ``None``.
        registry: The question types; the installed ones when ``None``.
        progress: Takes lines on what is being waited for.

    Raises:
        StartupError: The model, its tokenizer, its template or the backend will not do; says why and what to change.
    """
    settings = settings or Settings()
    registry = registry or load_registry(settings.disable_plugins)
    if not registry.types:
        raise StartupError(
            "no question types are installed; `openjev plugins list` shows what became of each plugin "
            "(is openjev itself installed, or only on sys.path?)"
        )
    async with _open_model(settings, progress) as model:
        engine = engine_for(model, settings, registry)
        if settings.connect and not settings.skip_checks:
            from openjev_core.engine.connecting import probe_labels  # noqa: PLC0415 - as below

            await probe_labels(engine, progress)
        try:
            yield engine
        finally:
            await engine.aclose()


def _open_model(settings: Settings, progress: Progress) -> AbstractAsyncContextManager[LoadedModel]:
    if settings.connect:
        from openjev_core.engine.connecting import connect  # noqa: PLC0415 - only where SGLang is served from

        return connect(settings, progress)
    from openjev_core.backends.llamacpp import open_llamacpp  # noqa: PLC0415 - xllamacpp is an optional extra

    return open_llamacpp(settings, progress)
