"""A server on fastmcp 4 whose tools run as tasks of the extension io.modelcontextprotocol/tasks.

The tools are those that the conformance suite's scenarios tasks-* name, own_id, slow_job,
ask_model, quiz, which checks that each answer is to its question, and tally, which says how often slow_compute was entered. Its --transport is stdio
or http (at /mcp).
"""

import argparse
import asyncio
import json
from datetime import timedelta
from typing import Any

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from fastmcp_tasks.context import get_task_context
from mcp.shared.exceptions import MCPError

flags = argparse.ArgumentParser(description=__doc__)
flags.add_argument("--transport", choices=["stdio", "http"], default="stdio")
flags.add_argument("--port", type=int, default=8000)
told = flags.parse_args()

server = FastMCP("fastmcp-tasks", version="4.1.2", instructions="Some tools take a while.")
server.add_extension(TasksExtension(url="memory://", concurrency=200))

often = timedelta(milliseconds=200)
optional = TaskConfig(mode="optional", poll_interval=often)
required = TaskConfig(mode="required", poll_interval=often)

entered: dict[str, int] = {}


def question(message: str, **properties: dict[str, str]) -> mcp_types.ElicitRequest:
    """Returns an elicitation of all the properties."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return mcp_types.ElicitRequest(
        params=mcp_types.ElicitRequestFormParams(message=message, requested_schema=schema)
    )


def answer(ctx: Context, key: str) -> Any:
    """Returns what the client answered, or None if it has not, or refused."""
    given = (ctx.input_responses or {}).get(key)
    return given.content if given is not None and given.action == "accept" else None


@server.tool
async def greet(name: str) -> str:
    """Greets, and never as a task."""
    return f"Hello, {name}!"


@server.tool
async def tally(label: str) -> int:
    """Says how often slow_compute was entered with the label."""
    return entered.get(label, 0)


@server.tool(task=optional)
async def slow_compute(seconds: float, label: str = "") -> str:
    """Takes its time."""
    entered[label] = entered.get(label, 0) + 1
    await asyncio.sleep(seconds)
    return f"computed {label} in {seconds:g} s"


@server.tool(task=required)
async def slow_job(seconds: float) -> str:
    """Takes its time, and only as a task."""
    await asyncio.sleep(seconds)
    return f"worked for {seconds:g} s"


@server.tool(task=required)
async def ask_model(prompt: str, ctx: Context) -> Any:
    """Asks the client's model once before it says what that said."""
    if ctx.input_responses is None:
        text = mcp_types.TextContent(type="text", text=prompt)
        params = mcp_types.CreateMessageRequestParams(messages=[mcp_types.SamplingMessage(role="user", content=text)], max_tokens=10)
        return mcp_types.InputRequiredResult(input_requests={"model": mcp_types.CreateMessageRequest(params=params)})
    return f"the model said {ctx.input_responses['model'].content.text}"


@server.tool(task=required)
async def own_id() -> str:
    """Says the id of the task that it runs as."""
    return get_task_context().task_id


@server.tool(task=required)
async def failing_job() -> str:
    """Fails, as a tool does."""
    await asyncio.sleep(0.3)
    raise ToolError("the job failed")


@server.tool(task=required)
async def protocol_error_job() -> str:
    """Fails, as a protocol does."""
    raise MCPError(code=-32603, message="the job broke the protocol", data={"of": "protocol_error_job"})


@server.tool(task=required)
async def confirm_delete(filename: str, ctx: Context) -> Any:
    """Asks once before it says what it did."""
    if ctx.input_responses is None:
        asked = question(f"Delete {filename}?", confirm={"type": "boolean"})
        return mcp_types.InputRequiredResult(input_requests={"confirm": asked})
    said = answer(ctx, "confirm")
    return f"deleted {filename}" if said and said["confirm"] else f"kept {filename}"


@server.tool(task=required)
async def multi_input(ctx: Context) -> Any:
    """Asks for two things at once."""
    if ctx.input_responses is None:
        asked = {
            "name": question("What is its name?", name={"type": "string"}),
            "confirm": question("Is that right?", confirm={"type": "boolean"}),
        }
        return mcp_types.InputRequiredResult(input_requests=asked)
    name, confirm = answer(ctx, "name"), answer(ctx, "confirm")
    return f"name {name and name['name']}, confirmed {bool(confirm and confirm['confirm'])}"


quizzes: dict[str, dict[str, Any]] = {}  # by label


@server.tool(task=required)
async def quiz(label: str, rounds: list[int], ctx: Context) -> Any:
    """Asks so many questions at once in each round; the right answer to each is its message."""
    count = quizzes.setdefault(label, {"round": 0, "asked": 0, "right": 0, "refused": 0, "wrong": []})
    if ctx.input_responses is not None:
        for i in range(rounds[count["round"]]):
            message = f"{label}/{count['round']}/{i}"
            said = answer(ctx, f"q{count['round']}-{i}")
            count["asked"] += 1
            if said is None:
                count["refused"] += 1
            elif said["echo"] == message:
                count["right"] += 1
            else:
                count["wrong"].append(f"{said['echo']} to {message}")
        count["round"] += 1
    if count["round"] == len(rounds):
        return json.dumps(count)
    n = count["round"]
    asked = {f"q{n}-{i}": question(f"{label}/{n}/{i}", echo={"type": "string"}) for i in range(rounds[n])}
    return mcp_types.InputRequiredResult(input_requests=asked)


if told.transport == "stdio":
    server.run(transport="stdio", show_banner=False, log_level="ERROR")
else:
    server.run(transport="http", host="127.0.0.1", port=told.port, show_banner=False, log_level="ERROR")
