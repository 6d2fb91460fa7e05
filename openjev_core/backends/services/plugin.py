"""Services as engines: servers of ``/v1/systemone`` and of ``/v1/decisions``.

Loaded whenever a command starts, so it imports nothing of the client.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from openjev_core.address import Address
from openjev_core.engine_type import EngineStart, EngineType
from openjev_core.plugins.hookspecs import hookimpl
from openjev_core.reader import Model

OK, METHOD_NOT_ALLOWED = 200, 405
"""A route that takes POST alone says the second to GET."""


async def recognise_systemone(address: Address) -> str | None:
    """The limits that openjev states, or the route."""
    status, page = await address.page("/v1/limits")
    if status == OK and isinstance(page.get("max_answers_per_question"), int):
        return "GET /v1/limits"
    return await recognise_route(address, "/v1/systemone")


async def recognise_decisions(address: Address) -> str | None:
    """The route."""
    return await recognise_route(address, "/v1/decisions")


async def recognise_route(address: Address, path: str) -> str | None:
    """The route, where there is one that does not take GET."""
    status, _ = await address.page(path)
    return f"GET {path} ({status})" if status == METHOD_NOT_ALLOWED else None


def open_systemone(start: EngineStart) -> AbstractAsyncContextManager[Model]:
    """A server of ``/v1/systemone``."""
    from openjev_core.backends.services.opening import connected_service  # noqa: PLC0415 - slow to import
    from openjev_core.backends.services.systemone import SystemOne  # noqa: PLC0415 - the same

    return connected_service(start, SystemOne())


def open_decisions(start: EngineStart) -> AbstractAsyncContextManager[Model]:
    """A server of ``/v1/decisions``."""
    from openjev_core.backends.services.decisions import Decisions  # noqa: PLC0415 - slow to import
    from openjev_core.backends.services.opening import connected_service  # noqa: PLC0415 - the same

    return connected_service(start, Decisions())


@hookimpl
def openjev_engines() -> Sequence[EngineType]:
    """Register both. Other engines' servers may have these routes too."""
    return [
        EngineType(
            name="systemone",
            summary="A running server of /v1/systemone, such as another openjev.",
            api=1,
            open=open_systemone,
            recognise=recognise_systemone,
            fallback=True,
        ),
        EngineType(
            name="decisions",
            summary="A running server of OpenAI's /v1/decisions.",
            api=1,
            open=open_decisions,
            recognise=recognise_decisions,
            fallback=True,
        ),
    ]
