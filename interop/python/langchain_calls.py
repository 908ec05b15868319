"""Calls a tool by langchain-mcp-adapters, which opens a session for each call.

    langchain_calls.py SERVER PARALLEL THEN TOOL ARGUMENTS WANT [keep] [log=DATA]

SERVER is a URL, or a command as a list in JSON, which is started for each session. PARALLEL
calls run side by side, THEN more follow one after another. {n} in ARGUMENTS (JSON), in WANT,
the text of the result, and in DATA is the number of the call. With keep, no session is ended
by DELETE. With log, a log message with DATA must have come before the result. What fails is
printed, a line each, and the status is 1 then; nothing follows it.
"""

import asyncio
import json
import sys
from typing import Any

from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient


def connection(server: str, keep: bool) -> Any:
    if server.startswith("http"):
        return {"transport": "streamable_http", "url": server, "terminate_on_close": not keep}
    command, *args = json.loads(server)
    return {"transport": "stdio", "command": command, "args": args}


async def main(server: str, parallel: int, then: int, name: str, arguments: str, text: str, more: list[str]) -> int:
    heard = set()

    async def on_message(params: Any, _: Any) -> None:
        heard.add(params.data)

    callbacks = Callbacks(on_logging_message=on_message)
    client = MultiServerMCPClient({"s": connection(server, "keep" in more)}, callbacks=callbacks)
    log = next((m.removeprefix("log=") for m in more if m.startswith("log=")), None)
    tool = next(t for t in await client.get_tools() if t.name == name)
    failed = 0

    async def call(n: int) -> None:
        nonlocal failed
        want = text.replace("{n}", str(n))
        try:
            got = (await tool.ainvoke(json.loads(arguments.replace("{n}", str(n)))))[0]["text"]
        except BaseException as e:  # a group of them is none of Exception
            got = repr(e)
        if got != want:
            failed += 1
            print(f"call {n}: {got}, want {want}", flush=True)
        elif log and log.replace("{n}", str(n)) not in heard:
            failed += 1
            print(f"call {n} heard no log message", flush=True)

    await asyncio.gather(*(call(n) for n in range(parallel)))
    for n in range(parallel, parallel + then):
        if failed:
            break
        await call(n)
    return failed


server, parallel, then, name, arguments, text = sys.argv[1:7]
sys.exit(min(1, asyncio.run(main(server, int(parallel), int(then), name, arguments, text, sys.argv[7:]))))
