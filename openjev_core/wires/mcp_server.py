"""A server of the Model Context Protocol, whose tools ask whatever answers requests: an engine here, or a server."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import Any

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as ToolDescription

from openjev_core.errors import MAX_PROBLEMS, OpenJevError, RequestError
from openjev_core.json_document import compact
from openjev_core.plugins.registry import Registry
from openjev_core.wires.tools import Tool, tools_of

Context = ServerRequestContext[Any, Any]

Answer = Callable[[bytes, Context], Awaitable[Mapping[str, Any]]]
"""Takes the body of a request of ``POST /v1/systemone`` and gives the response's; raises openjev's errors."""

INSTRUCTIONS = (
    "Typed questions about a state (a text, JSON or a chat), answered with probabilities that are read from a language "
    "model's first output token. Nothing is generated. Ask several questions about one state in one call of `ask`."
)

MOST_CHARACTERS = 4000
"""Of an error's text: what it quotes was the client's own."""

logger = logging.getLogger("openjev.mcp")


def mcp_server(registry: Registry, answer: Answer) -> Server[Any]:
    """The server. It keeps nothing between calls.

    Args:
        registry: The question types that the tools are made of.
        answer: Answers their requests. It is cancelled when a client cancels its call.
    """
    tools = tools_of(registry)
    described = [description_of(tool) for tool in tools.values()]

    async def list_tools(_context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=described)

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:80]!r}; tools: {', '.join(tools)}")
        try:
            return await called(tool, params.arguments or {}, answer, context)
        except RequestError as error:
            return failed(str(RequestError(tool.located(error).problems[:MAX_PROBLEMS])))
        except OpenJevError as error:
            return failed(str(error))
        except Exception:
            logger.exception("a call of the tool %s failed", tool.name)
            return failed("internal error; the server's log has it")

    return Server(
        "openjev",
        version=version("openjev"),
        instructions=INSTRUCTIONS,
        get_tool_input_schema=lambda name: tools[name].arguments if name in tools else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def description_of(tool: Tool) -> ToolDescription:
    """A tool as the protocol lists it. It changes nothing, and the same call gives the same answer."""
    return ToolDescription(
        name=tool.name,
        description=tool.description,
        input_schema=tool.arguments,
        output_schema=tool.result,
        annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )


async def called(tool: Tool, given: Mapping[str, Any], answer: Answer, context: Context) -> CallToolResult:
    """One call: its arguments answered, with progress for clients that asked for it.

    Raises:
        OpenJevError: The arguments are wrong, or what answers failed.
    """
    document = tool.document(given)
    questions = document.get("questions")
    total = len(questions) if isinstance(questions, dict) else 0
    await context.session.report_progress(0, total, "reading")
    # What JSON does not allow, the protocol's parser may: the body is held to the rules of every other request.
    body = await answer(json.dumps(document).encode(), context)
    await context.session.report_progress(total, total, "answered")
    returned = tool.returned(body)
    return CallToolResult(content=[TextContent(text=compact(returned))], structured_content=returned)


def failed(text: str) -> CallToolResult:
    """A call that went wrong, in words that the agent gets to read."""
    return CallToolResult(content=[TextContent(text=text[:MOST_CHARACTERS])], is_error=True)
