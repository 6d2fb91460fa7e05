"""Finds out which engine connects to a server: each is asked whether it recognises a page of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from openjev_core.address import Address
from openjev_core.engine_type import EngineType, Progress
from openjev_core.errors import OpenJevError, SettingsError, StartupError
from openjev_core.settings import Settings

IN_PROCESS = "llama.cpp"
"""The engine that is opened where the settings name neither an engine nor an address."""
RECOGNISE_TIMEOUT = 60.0
"""Seconds in which an engine has to say whether it recognises a server: a few pages, each of some seconds at most."""


async def find_engine(
    settings: Settings, engines: Mapping[str, EngineType], address: Address | None, progress: Progress
) -> EngineType:
    """The engine that the settings name, or else the one that recognises the server at the address.

    Args:
        settings: ``engine`` and ``connect``.
        engines: The installed ones by name.
        address: Entered; ``None`` where the settings have none.
        progress: Takes a line on what was found, and how.

    Raises:
        StartupError: Nothing answers at the address, or no engine recognises it; lists what was tried.
        SettingsError: There is no such engine, or its address is missing or has no meaning.
    """
    if settings.engine is None and address is not None:
        found, how = await recognised(address, engines.values())
        progress(f"connect: found {found.name} at {address.url}, by {how}")
        return found
    name = settings.engine or IN_PROCESS
    if name not in engines:
        raise SettingsError(
            f"OPENJEV_ENGINE: expected one of {', '.join(engines) or 'none, for no engine is installed'}, found "
            f"{name!r}; `openjev plugins list` shows what became of each"
        )
    engine = engines[name]
    if address is None and engine.recognise is not None:
        raise SettingsError(f"OPENJEV_ENGINE: {name} is a server: give its address with --connect (OPENJEV_CONNECT)")
    if address is not None:
        if engine.recognise is None:
            raise SettingsError(
                f"OPENJEV_ENGINE: {name} runs in this process and connects to nothing; leave out --connect "
                "(OPENJEV_CONNECT), or --engine so that what answers there is found out"
            )
        progress(f"connect: the server at {address.url} is taken for {name}, because --engine (OPENJEV_ENGINE) says so")
    return engine


async def recognised(address: Address, engines: Iterable[EngineType]) -> tuple[EngineType, str]:
    """The first engine that recognises a server, and by what; those that may mistake others' servers come last.

    Raises:
        StartupError: Nothing answers at the address, the key is refused, or no engine recognises the server.
    """
    connecting = sorted((one for one in engines if one.recognise is not None), key=lambda one: one.fallback)
    for engine in connecting:
        try:
            async with asyncio.timeout(RECOGNISE_TIMEOUT) as limit:
                how = await engine.recognise(address) if engine.recognise is not None else None
        except OpenJevError:
            raise
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything; another may recognise the server
            hung = f"did not end within {RECOGNISE_TIMEOUT:g} s"
            why = hung if limit.expired() else f"raised {type(error).__name__}: {error}"
            address.tried.append(f"{engine.name} (recognise {why})")
            continue
        if how is not None:
            return engine, how
    raise StartupError(
        f"connect: expected one of {', '.join(engine.name for engine in connecting)} at {address.url}, found a "
        f"server that is none of them, or not ready; tried {', '.join(address.tried)}. Give the address of one with "
        "--connect, or say what it is with --engine"
    )
