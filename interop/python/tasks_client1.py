"""Plays with the tasks of a server like node/tasks-server.mjs, on the experimental half of the Python SDK 1.x.

Prints what it found, as JSON. Standard input has the target, {url} or {argv}, a label for
what is run, whether the server asks, and the id resume of a task that an earlier run left.
"""

import asyncio
import json
import sys
import warnings
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import McpError
from pydantic import ValidationError

warnings.simplefilter("ignore")  # the SDK's next version has no tasks

ANSWERS = {"confirm": True, "name": "Ada"}
asked: list[str] = []


async def elicit(_: Any, params: types.ElicitRequestFormParams) -> types.ElicitResult:
    asked.append(params.message)
    return types.ElicitResult(action="accept", content={name: ANSWERS[name] for name in params.requestedSchema["properties"]})


def outcome(status: str, result: types.CallToolResult) -> dict[str, Any]:
    """Says how a task ended; a result can have no text."""
    found: dict[str, Any] = {"status": status, "isError": bool(result.isError)}
    if result.content:
        found["text"] = result.content[0].text
    return found


async def create(session: ClientSession, name: str, arguments: dict[str, Any]) -> str:
    return (await session.experimental.call_tool_as_task(name, arguments, ttl=600_000)).task.taskId


async def end(session: ClientSession, task_id: str) -> dict[str, Any]:
    """Looks until the task is over or asks, and has its result, as the SDK's users are told to."""
    status = "working"
    async for task in session.experimental.poll_task(task_id):
        status = task.status
        if status == "input_required":
            break
    try:
        result = await session.experimental.get_task_result(task_id, types.CallToolResult)
    except McpError as e:
        return {"status": status, "code": e.error.code, "message": e.error.message}
    except ValidationError as e:  # the SDK's own server has no content for a task that failed
        return {"status": status, "message": f"{e.errors()[0]['loc'][0]}: {e.errors()[0]['type']}"}
    if status == "input_required":
        status = (await session.experimental.get_task(task_id)).status
    found = outcome(status, result)
    if asked:
        found["asked"] = sorted(asked)
        asked.clear()
    return found


async def run(session: ClientSession, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return await end(session, await create(session, name, arguments))


async def play(session: ClientSession, label: str, asks: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"offered": session.get_server_capabilities().tasks.model_dump(exclude_none=True)}
    plain = await session.call_tool("greet", {"name": "World"})
    found["plain"] = outcome("completed", plain)
    found["transparent"] = (await session.call_tool("slow_compute", {"seconds": 0.2, "label": "unseen"})).content[0].text

    slow = await create(session, "slow_compute", {"seconds": 1, "label": "slow"})
    looked = await session.experimental.get_task(slow)
    # A busy machine looks when it has completed.
    found["looked"] = {"status": looked.status.replace("completed", "working"), "pollIntervalMs": looked.pollInterval, "sameId": looked.taskId == slow}
    found["slow"] = await end(session, slow)

    own = await create(session, "own_id", {})
    found["ownId"] = (await end(session, own)).get("text") == own
    if asks:
        found["confirm"] = await run(session, "confirm_delete", {"filename": "a.txt"})
        found["two"] = await run(session, "multi_input", {})
    found["failing"] = await run(session, "failing_job", {})
    found["broken"] = await run(session, "protocol_error_job", {})

    endless = await create(session, "slow_compute", {"seconds": 600, "label": "endless"})
    cancelled = await session.experimental.cancel_task(endless)
    found["cancelled"] = {"status": cancelled.status, "text": (await session.experimental.get_task(endless)).status}
    for case, ask in {"cancelled": session.experimental.cancel_task(endless), "unknown": session.experimental.get_task("nobody-has-this")}.items():
        try:
            await ask
        except McpError as e:
            found.setdefault(case, {})["code"] = e.error.code
    found["left"] = await create(session, "slow_compute", {"seconds": 2, "label": label})
    return found


async def resumed(session: ClientSession, task_id: str, label: str) -> dict[str, Any]:
    """Waits for a task that another connection made, and says how often it was run."""
    found = await end(session, task_id)
    return {**found, "entered": int((await session.call_tool("tally", {"label": label})).content[0].text)}


@asynccontextmanager
async def connect(told: dict[str, Any]) -> Any:
    if "url" in told:
        async with streamable_http_client(told["url"], terminate_on_close=False) as (read, write, _):
            yield read, write
    else:
        async with stdio_client(StdioServerParameters(command=told["argv"][0], args=told["argv"][1:])) as streams:
            yield streams


async def main() -> None:
    told = json.load(sys.stdin)
    async with connect(told) as (read, write), ClientSession(read, write, elicitation_callback=elicit) as session:
        await session.initialize()
        label = told["label"]
        found = await (resumed(session, told["resume"], label) if "resume" in told else play(session, label, told.get("asks", False)))
        print(json.dumps(found), flush=True)


asyncio.run(main())
