"""A server on the Python SDK 1.x, which knows the handshake era alone.

Its --transport is stdio, http (at /mcp), sse (at /sse) or ws (at /ws). Who
subscribes to a memo hears of it when the tool touch changes it.
"""

import argparse
from typing import Any
from weakref import WeakSet

import anyio
import uvicorn
from mcp import types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.session import ServerSession
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.websocket import websocket_server
from mcp.shared.exceptions import McpError
from pydantic import AnyUrl

MEMOS = {"today": "untouched"}
SUBSCRIBERS: dict[str, WeakSet[ServerSession]] = {}  # by URI

ANSWER = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


class Memos(Server):
    """The SDK derives its capabilities from the handlers, except for subscribe."""

    def get_capabilities(self, _: NotificationOptions, experimental: dict[str, Any]) -> types.ServerCapabilities:
        capabilities = super().get_capabilities(NotificationOptions(tools_changed=True), experimental)
        capabilities.resources = types.ResourcesCapability(subscribe=True, listChanged=False)
        return capabilities


server = Memos("python-1", version="1.30.0", instructions="Touch a memo.")


def schema(*names: str, kind: str = "string") -> dict:
    return {"type": "object", "properties": {name: {"type": kind} for name in names}, "required": list(names)}


TOOLS = [
    types.Tool(name="echo", description="Says it again.", inputSchema=schema("text")),
    types.Tool(
        name="add",
        description="Adds two integers.",
        inputSchema=schema("a", "b", kind="integer"),
        outputSchema=schema("sum", kind="integer"),
    ),
    types.Tool(name="touch", description="Changes a memo.", inputSchema=schema("uri")),
    types.Tool(name="ask", description="Asks the user.", inputSchema=schema("question")),
    types.Tool(name="count", description="Counts to three, with progress.", inputSchema=schema()),
    types.Tool(name="log", description="Logs a message.", inputSchema=schema("text")),
    types.Tool(name="learn", description="Adds the tool learned.", inputSchema=schema()),
]
LEARNED = types.Tool(name="learned", description="Does nothing.", inputSchema=schema())


def text(said: str) -> list[types.TextContent]:
    return [types.TextContent(type="text", text=said)]


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    return TOOLS


@server.call_tool()
async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
    match name:
        case "echo":
            return text(arguments["text"])
        case "add":
            return {"sum": arguments["a"] + arguments["b"]}
        case "touch":
            return await touch(arguments["uri"])
        case "ask":
            return await ask(arguments["question"])
        case "count":
            return await count()
        case "log":
            context = server.request_context
            await context.session.send_log_message("info", arguments["text"], "memos", context.request_id)
            return text("logged")
        case "learn":
            if LEARNED not in TOOLS:
                TOOLS.append(LEARNED)
            await server.request_context.session.send_tool_list_changed()
            return text("learned")
        case "learned":
            return text("nothing")
    raise ValueError(f"there is no tool {name}")


async def touch(uri: str) -> list[types.TextContent]:
    name = uri.removeprefix("memo://")
    MEMOS[name] = "touched"
    for session in list(SUBSCRIBERS.get(uri, ())):
        try:
            await session.send_resource_updated(AnyUrl(uri))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            SUBSCRIBERS[uri].discard(session)
    return text("touched")


async def ask(question: str) -> list[types.TextContent]:
    context = server.request_context
    told = await context.session.elicit_form(question, ANSWER, context.request_id)
    return text(f"{told.action}: {told.content['answer']}" if told.content else told.action)


async def count() -> list[types.TextContent]:
    context = server.request_context
    for n in (1, 2, 3):
        if token := context.meta and context.meta.progressToken:
            await context.session.send_progress_notification(token, n, 3, f"{n} of 3", str(context.request_id))
    return text("three")


@server.set_logging_level()
async def set_logging_level(_: types.LoggingLevel) -> None:
    """Messages are few: all are sent."""


@server.list_resources()
async def list_resources() -> list[types.Resource]:
    return [types.Resource(uri=AnyUrl("memo://today"), name="today", mimeType="text/plain")]


@server.list_resource_templates()
async def list_resource_templates() -> list[types.ResourceTemplate]:
    return [types.ResourceTemplate(uriTemplate="memo://{name}", name="memo", mimeType="text/plain")]


@server.read_resource()
async def read_resource(uri: AnyUrl) -> list[ReadResourceContents]:
    name = str(uri).removeprefix("memo://")
    if name not in MEMOS:
        raise McpError(types.ErrorData(code=-32002, message=f"there is no memo {name}", data={"uri": str(uri)}))
    return [ReadResourceContents(content=MEMOS[name], mime_type="text/plain")]


@server.subscribe_resource()
async def subscribe(uri: AnyUrl) -> None:
    SUBSCRIBERS.setdefault(str(uri), WeakSet()).add(server.request_context.session)


@server.unsubscribe_resource()
async def unsubscribe(uri: AnyUrl) -> None:
    SUBSCRIBERS.get(str(uri), WeakSet()).discard(server.request_context.session)


@server.list_prompts()
async def list_prompts() -> list[types.Prompt]:
    name = types.PromptArgument(name="name", required=True)
    return [types.Prompt(name="summarize", description="Asks for a summary of a memo.", arguments=[name])]


@server.get_prompt()
async def get_prompt(_: str, arguments: dict[str, str] | None) -> types.GetPromptResult:
    memo = MEMOS[(arguments or {})["name"]]
    content = types.TextContent(type="text", text=f"Summarize: {memo}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


async def run(streams: tuple) -> None:
    await server.run(*streams, server.create_initialization_options())


async def stdio(_: int) -> None:
    async with stdio_server() as streams:
        await run(streams)


async def http(port: int) -> None:
    sessions = StreamableHTTPSessionManager(server)
    async with sessions.run():
        await listen(sessions.handle_request, port)


async def sse(port: int) -> None:
    transport = SseServerTransport("/messages/")

    async def connect(scope: Any, receive: Any, send: Any) -> None:
        async with transport.connect_sse(scope, receive, send) as streams:
            await run(streams)

    async def route(scope: Any, receive: Any, send: Any) -> None:
        serve = connect if scope["method"] == "GET" else transport.handle_post_message
        await serve(scope, receive, send)

    await listen(route, port)


async def ws(port: int) -> None:
    async def connect(scope: Any, receive: Any, send: Any) -> None:
        async with websocket_server(scope, receive, send) as streams:
            await run(streams)

    await listen(connect, port)


async def listen(app: Any, port: int) -> None:
    config = uvicorn.Config(app, host="127.0.0.1", port=port, interface="asgi3", lifespan="off", log_level="warning")
    await uvicorn.Server(config).serve()


transports = {"stdio": stdio, "http": http, "sse": sse, "ws": ws}
flags = argparse.ArgumentParser(description=__doc__)
flags.add_argument("--transport", choices=transports, default="stdio")
flags.add_argument("--port", type=int, default=8000)
told = flags.parse_args()
anyio.run(transports[told.transport], told.port)
