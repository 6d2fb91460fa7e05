"""Answering a file's rows from the command line: by a server, or by a model in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from openjev_core.cli.failures import complain
from openjev_core.cli.setting_flags import settings_from
from openjev_core.errors import SettingsError

if TYPE_CHECKING:
    from openjev_core.engine.engine import Engine
    from openjev_core.evaluating.asking import Asker
    from openjev_core.plugins.registry import Registry
    from openjev_core.settings import Settings

CONCURRENCY = 4

WITH_A_SERVER = frozenset({"orders", "request_timeout", "disable_plugins"})
"""Settings that mean something here when a server answers: what it is asked for, how long it has, what labels mean."""


def installed_types(settings: Settings) -> Registry:
    """The installed question types; what did not load is told."""
    from openjev_core.plugins.registry import load_registry  # noqa: PLC0415

    registry = load_registry(settings.disable_plugins)
    for entry in registry.failures:
        complain(f"warning: plugin {entry.name} of {entry.distribution} {entry.version} did not load: {entry.cause}")
    return registry


def settings_for(url: str | None, flags: Mapping[str, Any]) -> Settings:
    """The settings, once it is clear that the flags make sense.

    Raises:
        SettingsError: A flag configures a model in this process, and a server answers.
    """
    if url is not None:
        for name, value in flags.items():
            if value is not None and name not in WITH_A_SERVER:
                flag = name.replace("_", "-")
                raise SettingsError(f"--{flag} configures a model in this process; with --url the server's own holds")
    return settings_from(flags).settings


@asynccontextmanager
async def open_asker(
    url: str | None, settings: Settings, flags: Mapping[str, Any], registry: Registry, concurrency: int | None
) -> AsyncIterator[tuple[Asker, int]]:
    """Who answers, and how many rows may be in flight."""
    from openjev_core.evaluating.asking import EngineAsker, open_http  # noqa: PLC0415

    if url is None:
        async with open_here(settings, registry) as engine:
            yield EngineAsker(engine), places(concurrency, engine)
        return
    wanted = concurrency or CONCURRENCY
    async with open_http(
        url,
        # Only what was asked for on this command line: the variable is the server's own setting.
        orders=None if flags.get("orders") is None else settings.orders,
        api_key=settings.api_key[0] if settings.api_key else None,
        seconds=settings.request_timeout,
        concurrency=wanted,
    ) as asker:
        yield asker, wanted


@asynccontextmanager
async def open_here(settings: Settings, registry: Registry) -> AsyncIterator[Engine]:
    """A model in this process."""
    from openjev_core.cli.progress import waiting  # noqa: PLC0415
    from openjev_core.engine import opening  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        with waiting() as progress:
            opened = opening.open_engine(settings, registry=registry, progress=progress)
            engine = await stack.enter_async_context(opened)
        if engine.model.demo:
            complain(f"warning: {engine.model.public_name} is a demo model and no classifier; give a better --model")
        yield engine


def places(wanted: int | None, engine: Engine) -> int:
    """How many rows an engine in this process may have in flight.

    Raises:
        SettingsError: More were asked for than it admits.
    """
    limit = engine.settings.max_concurrent_requests
    if wanted is not None and wanted > limit:
        raise SettingsError(
            f"--concurrency {wanted}: a model in this process takes up to {limit} at once "
            "(OPENJEV_MAX_CONCURRENT_REQUESTS)"
        )
    # The embedded model answers one after another: a second row would only wait, with its deadline running.
    return wanted or (1 if engine.model.backend.name == "llama.cpp" else min(CONCURRENCY, limit))


@contextmanager
def counting(done: int, total: int) -> Iterator[Callable[[], None]]:
    """A function to call after each row. A bar on a terminal; elsewhere a line now and then.

    Attempts that failed are told as they are made again; and where the run ends early, what became of its rows.
    """
    if done:
        complain(f"{done} of {total} rows were answered before; going on with the others")
    answered = done
    try:
        with _retries_told(), _shown(done, total) as show:

            def count() -> None:
                nonlocal answered
                answered += 1
                show(answered)

            yield count
    except BaseException:  # a Ctrl-C, too
        complain(f"{answered} of {total} rows are answered and kept; the same command again goes on with the others")
        raise


@contextmanager
def _shown(done: int, total: int) -> Iterator[Callable[[int], None]]:
    """A function that shows how many rows are answered."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda answered: _tell_now_and_then(answered, total)
        return
    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("rows", total=total, completed=done)
        yield lambda answered: progress.update(task, completed=answered)


def _tell_now_and_then(answered: int, total: int) -> None:
    if answered % max(1, total // 10) == 0 or answered == total:
        complain(f"{answered} of {total} rows answered")


@contextmanager
def _retries_told() -> Iterator[None]:
    """Tell why something is tried again; of itself the library that does so logs its own name and no reason."""
    from stamina.instrumentation import RetryDetails, set_on_retry_hooks  # noqa: PLC0415

    def tell(details: RetryDetails) -> None:
        cause = details.caused_by
        complain(f"trying again in {details.wait_for:.1f} s: {str(cause) or type(cause).__name__}")

    set_on_retry_hooks([tell])
    try:
        yield
    finally:
        set_on_retry_hooks(None)


def refused_lines(records: Sequence[Mapping[str, Any]], most: int = 10) -> list[str]:
    """What to tell about rows that were refused."""
    refused = [record for record in records if "error" in record]
    lines = [f"row {record['row']} ({record['id']}) was refused: {record['error']}" for record in refused[:most]]
    return [*lines, f"{len(refused)} rows were refused in all"] if len(refused) > most else lines
