"""A server on the Python SDK 2.x, of the modern era alone, whose one tool fails with a code of its own."""

from typing import Any

import anyio
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import MODERN_PROTOCOL_VERSIONS


async def no_handshake(ctx: ServerRequestContext[Any], call_next: Any) -> Any:
    if ctx.method == "initialize":
        raise MCPError(UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version", {"supported": list(MODERN_PROTOCOL_VERSIONS)})
    return await call_next(ctx)


server = MCPServer("refuse-2", version="1", log_level="ERROR", middleware=[no_handshake])


@server.tool(structured_output=False)
def refuse(code: int) -> str:
    """Fails with an error of this code."""
    raise MCPError(code, "the tide is out", {"until": "noon"})


anyio.run(server.run_stdio_async)
