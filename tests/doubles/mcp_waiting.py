"""Tools over standard input and output whose calls never end: it writes when one begins and when one is cancelled."""

from __future__ import annotations

import asyncio
import sys

from mcp.server.stdio import stdio_server

from openjev_core.plugins.registry import load_registry
from openjev_core.wires.mcp_server import mcp_server


def tell(word):
    print(word, file=sys.stderr, flush=True)


async def answer(body, context):
    tell("begun")
    try:
        await asyncio.Event().wait()
    finally:
        tell("cancelled")


async def main():
    server = mcp_server(load_registry(), answer)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
