"""A server on the Python SDK 2.x, which serves both eras, or with --modern-only one.

Its --transport is stdio, http (at /mcp) or sse (at /sse). Who listens for a memo
hears of it when the tool touch changes it.
"""

import argparse
import warnings
from typing import Annotated, Any

import anyio
from mcp import MCPDeprecationWarning, MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

MEMOS = {"today": "untouched"}

flags = argparse.ArgumentParser(description=__doc__)
flags.add_argument("--transport", choices=["stdio", "http", "sse"], default="stdio")
flags.add_argument("--port", type=int, default=8000)
flags.add_argument("--modern-only", action="store_true")
told = flags.parse_args()


async def no_handshake(ctx: ServerRequestContext[Any], call_next: Any) -> Any:
    """Refuses initialize as a server of the modern era alone does."""
    if ctx.method == "initialize":
        requested = (ctx.params or {}).get("protocolVersion")
        data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": requested}
        raise MCPError(UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version", data)
    return await call_next(ctx)


server = MCPServer(
    "python-2",
    version="2.3.0",
    instructions="Touch a memo.",
    log_level="WARNING",
    middleware=[no_handshake] if told.modern_only else [],
)


class Sum(BaseModel):
    sum: int


class Answer(BaseModel):
    answer: str


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Says it again."""
    return text


@server.tool()
def add(a: int, b: int) -> Sum:
    """Adds two integers."""
    return Sum(sum=a + b)


@server.tool(structured_output=False)
async def touch(uri: str, ctx: Context) -> str:
    """Changes a memo."""
    MEMOS[uri.removeprefix("memo://")] = "touched"
    await ctx.notify_resource_updated(uri)
    return "touched"


def put(question: str) -> Elicit[Answer]:
    return Elicit(question, Answer)


@server.tool(structured_output=False)
def ask(question: str, told: Annotated[ElicitationResult[Answer], Resolve(put)]) -> str:
    """Asks the user."""
    return f"accept: {told.data.answer}" if told.action == "accept" else told.action


@server.tool(structured_output=False)
async def count(ctx: Context) -> str:
    """Counts to three, with progress."""
    for n in (1, 2, 3):
        await ctx.report_progress(n, 3, f"{n} of 3")
    return "three"


@server.tool(structured_output=False)
async def log(text: str, ctx: Context) -> str:
    """Logs a message."""
    await ctx.log("info", text, logger_name="memos")
    return "logged"


@server.tool(structured_output=False)
async def learn(ctx: Context) -> str:
    """Adds the tool learned."""
    server.add_tool(learned, structured_output=False)
    await ctx.notify_tools_changed()
    return "learned"


def learned() -> str:
    """Does nothing."""
    return "nothing"


@server.resource("memo://today", mime_type="text/plain")
def today() -> str:
    return MEMOS["today"]


@server.resource("memo://{name}", mime_type="text/plain")
def memo(name: str) -> str:
    if name not in MEMOS:
        raise ResourceNotFoundError(f"there is no memo {name}")
    return MEMOS[name]


@server.prompt()
def summarize(name: str) -> str:
    """Asks for a summary of a memo."""
    return f"Summarize: {MEMOS[name]}"


warnings.simplefilter("ignore", MCPDeprecationWarning)  # what is deprecated is still to be carried over
match told.transport:
    case "stdio":
        anyio.run(server.run_stdio_async)
    case "http":
        anyio.run(lambda: server.run_streamable_http_async(port=told.port))
    case "sse":
        anyio.run(lambda: server.run_sse_async(port=told.port))
