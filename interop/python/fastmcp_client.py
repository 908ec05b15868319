"""Plays with the tasks of a server like fastmcp_server.py, and prints what it found, as JSON.

Standard input has the target, {url} or {argv}, a label for what is run, and the id resume
of a task that an earlier run left, to look for that. With research the server is
server-everything.
"""

import asyncio
import json
import sys
from typing import Any

import fastmcp_tasks
import mcp.client.session
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp_tasks import ToolTask, call_tool_task
from fastmcp_tasks.client_models import ClientCreateTaskResult
from mcp.shared.exceptions import MCPError

# A client gives up after 10 s, and importing all of a server takes that long on a busy machine.
mcp.client.session.DISCOVER_TIMEOUT_SECONDS = 60.0

REVISION = "2026-07-28"
ANSWERS = {"confirm": True, "name": "Ada"}
asked: list[str] = []


async def elicit(message: str, response_type: Any, params: Any, context: Any) -> ElicitResult:
    asked.append(message)
    properties = params.requested_schema["properties"]
    content = {name: ANSWERS[name] if name in ANSWERS else told["oneOf"][1]["const"] for name, told in properties.items()}
    return ElicitResult(action="accept", content=content)


def taken() -> list[str]:
    told = sorted(asked)
    asked.clear()
    return told


def outcome(task: Any) -> dict[str, Any]:
    """Says how a task ended: its status, and its text, or error."""
    if task.status == "failed":
        return {"status": task.status, "code": task.error["code"], "message": task.error["message"]}
    if task.status != "completed":
        return {"status": task.status}
    result = task.result
    return {"status": task.status, "text": result["content"][0]["text"], "isError": result.get("isError", False)}


async def run(client: Client, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Runs a tool as a task, and returns the task's id and what came of it."""
    task = await call_tool_task(client, name, arguments, raise_on_error=False)
    await task.result()
    return task.task_id, outcome(await task.status())


async def play(client: Client, label: str) -> dict[str, Any]:
    found: dict[str, Any] = {"offered": (await client.session.send_discover(REVISION))["capabilities"]["extensions"]}
    plain = await client.call_tool("greet", {"name": "World"})
    found["plain"] = {"status": "completed", "text": plain.content[0].text, "isError": plain.is_error}
    # The caller never learns that the call was run as a task.
    found["transparent"] = (await client.call_tool("slow_compute", {"seconds": 0.2, "label": "unseen"})).content[0].text

    slow = await call_tool_task(client, "slow_compute", {"seconds": 1, "label": "slow"})
    looked = await slow.status()
    found["looked"] = {
        "status": looked.status.replace("completed", "working"),  # a busy machine looks when it has completed
        "pollIntervalMs": looked.poll_interval_ms,
        "sameId": looked.task_id == slow.task_id,
    }
    await slow.result()
    found["slow"] = outcome(await slow.status())

    own, said = await run(client, "own_id", {})
    found["ownId"] = said["text"] == own
    found["confirm"] = {**(await run(client, "confirm_delete", {"filename": "a.txt"}))[1], "asked": taken()}
    found["two"] = {**(await run(client, "multi_input", {}))[1], "asked": taken()}
    found["failing"] = (await run(client, "failing_job", {}))[1]
    found["broken"] = (await run(client, "protocol_error_job", {}))[1]

    endless = await call_tool_task(client, "slow_compute", {"seconds": 600, "label": "endless"})
    await endless.cancel()
    found["cancelled"] = {"status": (await endless.wait(timeout=60)).status}

    try:
        found["unknown"] = outcome(await known(client, "nobody-has-this").status())
    except MCPError as e:
        found["unknown"] = {"code": e.error.code}

    found["left"] = (await call_tool_task(client, "slow_compute", {"seconds": 2, "label": label})).task_id
    return found


def known(client: Client, task_id: str) -> ToolTask:
    """Returns a handle for a task whose id is all that is known of it."""
    created = {"resultType": "task", "taskId": task_id, "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttlMs": None}
    return ToolTask(client, "", ClientCreateTaskResult.model_validate(created))


async def resumed(client: Client, task_id: str, label: str) -> dict[str, Any]:
    """Waits for a task that another connection made, and says how often it was run."""
    found = outcome(await known(client, task_id).wait(timeout=120))
    return {**found, "entered": int((await client.call_tool("tally", {"label": label})).content[0].text)}


async def research(client: Client) -> dict[str, Any]:
    """Has server-everything's tool run to its end, ask in the middle, and be cancelled."""
    tool = "simulate-research-query"

    async def heading(arguments: dict[str, Any]) -> dict[str, Any]:
        found = (await run(client, tool, arguments))[1]
        return {**found, "text": found["text"].split("\n")[0]} if "text" in found else found

    plain, ambiguous = await asyncio.gather(heading({"topic": "bridges"}), heading({"topic": "python", "ambiguous": True}))
    endless = await call_tool_task(client, tool, {"topic": "nothing"})
    await endless.cancel()
    cancelled = await endless.wait(timeout=60)
    return {"plain": plain, "ambiguous": {**ambiguous, "asked": taken()}, "cancelled": {"status": cancelled.status}}


async def main() -> None:
    told = json.load(sys.stdin)
    if "url" in told:
        transport: Any = StreamableHttpTransport(told["url"])
    else:
        transport = StdioTransport(command=told["argv"][0], args=told["argv"][1:])
    # Asked to find out the era, it would take a server that is slow to start for a legacy one.
    async with Client(transport, mode=REVISION, elicitation_handler=elicit) as client:
        if told.get("research"):
            found = await research(client)
        elif "resume" in told:
            found = await resumed(client, told["resume"], told["label"])
        else:
            found = await play(client, told["label"])
    print(json.dumps(found))


assert fastmcp_tasks  # to import it is what makes the client declare the extension
asyncio.run(main())
