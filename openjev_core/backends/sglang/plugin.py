"""SGLang as an engine. Loaded whenever a command starts, so it imports nothing of the client."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from openjev_core.address import Address
from openjev_core.engine_type import EngineStart, EngineType
from openjev_core.plugins.hookspecs import hookimpl
from openjev_core.reader import Model

PAGES = ("/model_info", "/get_model_info")
"""A router before several SGLangs has the second alone."""
OK = 200


async def recognise(address: Address) -> str | None:
    """The page on which a server names its model as SGLang does; ``None`` where there is none."""
    for path in PAGES:
        status, page = await address.page(path)
        if status == OK and isinstance(page.get("model_path"), str):
            return f"GET {path}"
    return None


def open_connected(start: EngineStart) -> AbstractAsyncContextManager[Model]:
    """The model that a running SGLang serves."""
    from openjev_core.backends.sglang.connected import connected_model  # noqa: PLC0415 - slow to import

    return connected_model(start)


@hookimpl
def openjev_engines() -> Sequence[EngineType]:
    """Register SGLang."""
    summary = "A running SGLang, or a router before several."
    return [EngineType(name="sglang", summary=summary, api=1, open=open_connected, recognise=recognise)]
