"""A server whose tools run as tasks of 2025-11-25, on the experimental half of the Python SDK 1.x.

It has the tools of node/tasks-server.mjs but quiz and ledger. What a tool says is wrong with
isError has the status completed here; a tool that raises has failed, and tasks/result has
nothing of it. Its --transport is stdio or http (at /mcp).
"""

import argparse
import itertools
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import uvicorn
import mcp.server.session
from mcp import types
from mcp.server.experimental.task_context import ServerTaskContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import McpError

warnings.simplefilter("ignore")  # the SDK's next version has no tasks

# The SDK takes the id of an object for the id of a task's question. The object is gone by then, so
# that two questions which are open at once can have the same: a client can't answer both.
mcp.server.session.id = lambda _, numbers=itertools.count(): next(numbers)

server = Server("tasks-python-1", version="1.30.0", instructions="Some tools take a while.")
support = server.experimental.enable_tasks()

entered: dict[str, int] = {}

TEXT = {"type": "string"}
BOOLEAN = {"type": "boolean"}
NUMBER = {"type": "number"}


def schema(**properties: dict[str, str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def text(words: str, wrong: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], isError=wrong)


async def ask(task: ServerTaskContext, message: str, **properties: dict[str, str]) -> dict[str, Any]:
    """Returns what the user said, nothing if they refused."""
    said = await task.elicit(message, schema(**properties))
    # The SDK's tasks/result misses what happens while it writes the question, and waits without
    # end for a task that is over when it has written.
    await anyio.sleep(0.2)
    return said.content or {} if said.action == "accept" else {}


async def slow_compute(task: ServerTaskContext, seconds: float, label: str = "") -> types.CallToolResult:
    entered[label] = entered.get(label, 0) + 1
    end = anyio.current_time() + seconds
    while anyio.current_time() < end and not task.is_cancelled:
        await anyio.sleep(min(0.1, max(0, end - anyio.current_time())))
    return text(f"computed {label} in {seconds:g} s")


async def own_id(task: ServerTaskContext) -> types.CallToolResult:
    return text(task.task_id)


async def failing_job(_: ServerTaskContext) -> types.CallToolResult:
    await anyio.sleep(0.3)
    return text("the job failed", wrong=True)


async def protocol_error_job(_: ServerTaskContext) -> types.CallToolResult:
    raise McpError(types.ErrorData(code=types.INTERNAL_ERROR, message="the job broke the protocol"))


async def confirm_delete(task: ServerTaskContext, filename: str) -> types.CallToolResult:
    said = await ask(task, f"Delete {filename}?", confirm=BOOLEAN)
    return text(f"{'deleted' if said.get('confirm') else 'kept'} {filename}")


async def multi_input(task: ServerTaskContext) -> types.CallToolResult:
    said: dict[str, Any] = {}

    async def one(message: str, **properties: dict[str, str]) -> None:
        said.update(await ask(task, message, **properties))

    async with anyio.create_task_group() as both:
        both.start_soon(lambda: one("What is its name?", name=TEXT))
        both.start_soon(lambda: one("Is that right?", confirm=BOOLEAN))
    return text(f"name {said.get('name')}, confirmed {bool(said.get('confirm'))}")


JOBS = {job.__name__: job for job in (slow_compute, own_id, failing_job, protocol_error_job, confirm_delete, multi_input)}
ARGUMENTS = {"confirm_delete": schema(filename=TEXT), "slow_compute": {**schema(seconds=NUMBER, label=TEXT), "required": ["seconds"]}}


def supports(name: str) -> str:
    return "optional" if name == "slow_compute" else "required"


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    plain = [
        types.Tool(name="greet", description="Greets, and never as a task.", inputSchema=schema(name=TEXT)),
        types.Tool(name="tally", description="Says how often slow_compute was entered.", inputSchema=schema(label=TEXT)),
    ]
    return plain + [
        types.Tool(
            name=name,
            description=f"Runs {name} as a task.",
            inputSchema=ARGUMENTS.get(name, schema()),
            execution=types.ToolExecution(taskSupport=supports(name)),
        )
        for name in JOBS
    ]


@server.call_tool(validate_input=False)
async def call_tool(name: str, arguments: dict[str, Any]) -> types.CallToolResult | types.CreateTaskResult:
    if name == "greet":
        return text(f"Hello, {arguments['name']}!")
    if name == "tally":
        times = entered.get(arguments["label"], 0)
        return types.CallToolResult(content=text(str(times)).content, structuredContent={"result": times})
    experimental = server.request_context.experimental
    experimental.validate_task_mode(supports(name))
    if not experimental.is_task:  # slow_compute alone
        await anyio.sleep(arguments["seconds"])
        return text(f"computed {arguments.get('label', '')} in {arguments['seconds']:g} s")
    return await experimental.run_task(lambda task: JOBS[name](task, **arguments))


async def stdio(_: int) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def http(port: int) -> None:
    sessions = StreamableHTTPSessionManager(server)
    config = uvicorn.Config(sessions.handle_request, host="127.0.0.1", port=port, interface="asgi3", lifespan="off", log_level="warning")
    async with sessions.run():
        await uvicorn.Server(config).serve()


@asynccontextmanager
async def lasting() -> AsyncIterator[None]:
    """Is what a session enters instead of the SDK's, whose end takes their tasks from all other sessions."""
    yield


async def main(transport: str, port: int) -> None:
    async with support.run():
        support.run = lasting
        await transports[transport](port)


transports = {"stdio": stdio, "http": http}
flags = argparse.ArgumentParser(description=__doc__)
flags.add_argument("--transport", choices=transports, default="stdio")
flags.add_argument("--port", type=int, default=8000)
told = flags.parse_args()
anyio.run(main, told.transport, told.port)
