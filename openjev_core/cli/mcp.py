"""``openjev mcp``: tools for agents, by the Model Context Protocol over standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from openjev_core.cli.plugins import installed_types
from openjev_core.cli.setting_flags import OF_THE_SERVER, settings_from, takes_settings
from openjev_core.cli.terminal import complain
from openjev_core.errors import StartupError

if TYPE_CHECKING:
    from openjev_core.plugins.registry import Registry
    from openjev_core.settings import Settings
    from openjev_core.wires.mcp_server import Context


@takes_settings(without=(OF_THE_SERVER - {"max_concurrent_requests", "queue_timeout"}) | {"sglang_python", "frontend"})
def mcp(**flags: Any) -> None:
    """Offer tools to an agent over standard input and output, by the Model Context Protocol.

    The tools decide yes/no questions, choose, score, and ask questions of any installed type, on a model in this
    process. `openjev serve --mcp` offers the same tools over HTTP.
    """
    settings = settings_from(flags).settings
    asyncio.run(serve_tools(settings, installed_types(settings)))


async def serve_tools(settings: Settings, registry: Registry) -> None:
    """Open a model and offer the tools, until standard input ends.

    Raises:
        StartupError: The model does not open, or the package of the protocol is not installed.
    """
    try:
        from mcp.server.stdio import stdio_server  # noqa: PLC0415 - an optional extra

        from openjev_core.wires.mcp_server import mcp_server  # noqa: PLC0415
    except ImportError as error:
        raise StartupError(
            "`openjev mcp` needs the package mcp, which is not installed; install openjev[mcp]"
        ) from error
    from openjev_core.engine import opening  # noqa: PLC0415

    async with opening.open_engine(settings, registry=registry, progress=complain) as engine:

        async def answer(body: bytes, _context: Context) -> Mapping[str, Any]:
            return (await engine.evaluate_body(body)).body()

        server = mcp_server(registry, answer)
        async with stdio_server() as (reading, writing):
            complain(f"tools of {engine.model.public_name} are ready on standard input and output")
            with redirect_stdout(sys.stderr):  # what a question type prints must not stand between messages
                await server.run(reading, writing, server.create_initialization_options())
