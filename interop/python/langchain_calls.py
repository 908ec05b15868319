"""Calls a tool by langchain-mcp-adapters, which opens a session for each call.

    langchain_calls.py URL PARALLEL THEN TOOL ARGUMENTS WANT [keep]

PARALLEL calls run side by side, THEN more follow one after another. {n} in ARGUMENTS (JSON)
and in WANT, the text of the result, is the number of the call. With keep, no session is ended
by DELETE. What fails is printed, a line each, and the status is 1 then; nothing follows it.
"""

import asyncio
import json
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main(url: str, parallel: int, then: int, name: str, arguments: str, text: str, keep: bool) -> int:
    client = MultiServerMCPClient({"s": {"transport": "streamable_http", "url": url, "terminate_on_close": not keep}})
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

    await asyncio.gather(*(call(n) for n in range(parallel)))
    for n in range(parallel, parallel + then):
        if failed:
            break
        await call(n)
    return failed


url, parallel, then, name, arguments, text = sys.argv[1:7]
sys.exit(min(1, asyncio.run(main(url, int(parallel), int(then), name, arguments, text, sys.argv[7:] == ["keep"]))))
