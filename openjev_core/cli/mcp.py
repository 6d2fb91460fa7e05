"""``openjev mcp``: tools for agents, by the Model Context Protocol over standard input and output."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

from openjev_core.cli.plugins import installed_types
from openjev_core.cli.row_flags import Url
from openjev_core.cli.row_runs import settings_for
from openjev_core.cli.setting_flags import OF_THE_SERVER, takes_settings
from openjev_core.cli.terminal import complain
from openjev_core.errors import RequestError, StartupError
from openjev_core.json_document import parse_document

if TYPE_CHECKING:
    from openjev_core.plugins.registry import Registry
    from openjev_core.settings import Settings
    from openjev_core.wires.mcp_server import Answer, Context

WITH_A_SERVER = frozenset({"model", "request_timeout", "disable_plugins"})
"""Settings that hold where a server answers: the model id that it is asked for, its time limit, and the types that the
tools are made of."""

CONNECTIONS = 16
"""Calls of an agent that a server is asked at once."""


@takes_settings(without=(OF_THE_SERVER - {"max_concurrent_requests", "queue_timeout"}) | {"sglang_python", "frontend"})
def mcp(
    *,
    url: Url = None,
    **flags: Any,
) -> None:
    """Offer tools to an agent over standard input and output, by the Model Context Protocol.

    The tools decide yes/no questions, choose, score, and ask questions of any installed type, on a model in this
    process or with --url on a running server. `openjev serve --mcp` offers the same tools over HTTP.
    """
    settings = settings_for(url, flags, WITH_A_SERVER)
    # By the flag alone: the environment variable names a model in this process.
    import asyncio  # noqa: PLC0415 - slow to import

    asyncio.run(serve_tools(url, flags["model"], settings, installed_types(settings)))


async def serve_tools(url: str | None, model: str | None, settings: Settings, registry: Registry) -> None:
    """Offer the tools of a model in this process or of a server, until standard input ends.

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
    answers = answers_of_server(url, settings, model) if url is not None else answers_here(settings, registry)
    async with AsyncExitStack() as stack:
        with redirect_stdout(sys.stderr):  # what a plugin prints must not stand between messages
            name, answer = await stack.enter_async_context(answers)
        server = mcp_server(registry, answer)
        async with stdio_server() as (reading, writing):
            complain(f"tools of {name} are ready on standard input and output")
            with redirect_stdout(sys.stderr):
                await server.run(reading, writing, server.create_initialization_options())


@asynccontextmanager
async def answers_here(settings: Settings, registry: Registry) -> AsyncIterator[tuple[str, Answer]]:
    """The name of a model in this process, and what answers."""
    from openjev_core.engine import opening  # noqa: PLC0415

    async with opening.open_engine(settings, registry=registry, progress=complain) as engine:

        async def answer(body: bytes, _context: Context) -> Mapping[str, Any]:
            return (await engine.evaluate_body(body)).body()

        yield engine.model.public_name, answer


@asynccontextmanager
async def answers_of_server(url: str, settings: Settings, model: str | None) -> AsyncIterator[tuple[str, Answer]]:
    """A server's address, and what asks it."""
    from openjev_core.client.asking import ask_server  # noqa: PLC0415
    from openjev_core.client.server import Refused, open_server  # noqa: PLC0415

    key = settings.api_key[0] if settings.api_key else None
    async with open_server(url, api_key=key, seconds=settings.request_timeout, concurrency=CONNECTIONS) as server:

        async def answer(body: bytes, _context: Context) -> Mapping[str, Any]:
            try:
                document = parse_document(body)
                answered = await ask_server(server, {**document, "model": model or document["model"]})
            except Refused as refusal:
                raise RequestError(refusal.problems) from None
            read, made, _ = answered.usage
            usage = {"input_tokens": read, "output_tokens": made}
            return {"model": answered.model, "answers": answered.answers, "usage": usage}

        yield url, answer
