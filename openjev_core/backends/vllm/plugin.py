"""vLLM as an engine. Loaded whenever a command starts, so it imports nothing of the client."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from openjev_core.address import Address
from openjev_core.engine_type import EngineStart, EngineType
from openjev_core.plugins.hookspecs import hookimpl
from openjev_core.reader import Model

PAGE = "/v1/models"
OK = 200


async def recognise(address: Address) -> str | None:
    """The page on which a server says that its models are vLLM's; ``None`` where it does not."""
    status, page = await address.page(PAGE)
    models = page.get("data") if status == OK else None
    owners = [model.get("owned_by") for model in models if isinstance(model, dict)] if isinstance(models, list) else []
    return f"GET {PAGE}" if "vllm" in owners else None


def open_connected(start: EngineStart) -> AbstractAsyncContextManager[Model]:
    """The model that a running vLLM serves."""
    from openjev_core.backends.vllm.connected import connected_model  # noqa: PLC0415 - slow to import

    return connected_model(start)


@hookimpl
def openjev_engines() -> Sequence[EngineType]:
    """Register vLLM."""
    summary = "A running vLLM 0.26 or newer, or a router before several."
    return [EngineType(name="vllm", summary=summary, api=1, open=open_connected, recognise=recognise)]
