"""The line protocol of interop/remote, for clients made with a Python SDK.

The module knows no SDK: client1.py and client2.py bring one.
"""

import json
import sys
from contextlib import AbstractAsyncContextManager
from typing import Any, Awaitable, Callable, Protocol

import anyio


class Client(Protocol):
    """An SDK's client on its server."""

    hello: Any  # the result of initialize

    async def do(self, command: dict) -> Any: ...


Connect = Callable[["Remote", dict], AbstractAsyncContextManager[Client]]


class Remote:
    """Reads commands from standard input, and writes lines to standard output."""

    def __init__(self) -> None:
        self._commands = anyio.wrap_file(sys.stdin)
        self._running: dict[int, anyio.CancelScope] = {}  # by the command's id
        self._asked: dict[int, tuple[anyio.Event, list[dict]]] = {}  # by the question's number
        self._asks = 0

    async def run(self, connect: Connect) -> None:
        """Opens a session when the test says so, runs commands on it, and ends it, until standard input ends.

        While a session is being opened no other command is read.
        """
        while command := await self._next():
            if command["method"] == "initialize":
                command = await self._session(command, connect)
            if command and command["method"] == "close":
                self._write({"id": command["id"], "result": {}})
            elif command:
                self._write({"id": command["id"], "error": as_error(RuntimeError("there is no session"))})

    async def _session(self, command: dict, connect: Connect) -> dict | None:
        """Returns the command that ended the session, or None if none did."""
        opened = False
        try:
            async with connect(self, command["params"]) as client:
                opened = True
                self._write({"id": command["id"], "result": client.hello})
                return await self._serve(client)
        except Exception as e:
            if opened:
                raise
            self._write({"id": command["id"], "error": as_error(e)})
            return None

    async def _serve(self, client: Client) -> dict | None:
        async with anyio.create_task_group() as tasks:
            while (command := await self._next()) and command["method"] != "close":
                match command["method"]:
                    case "answer":
                        self._answer(command)
                    case "cancel":
                        if scope := self._running.get(command["of"]):
                            scope.cancel()
                    case _:
                        tasks.start_soon(self._run, client, command)
            tasks.cancel_scope.cancel()
        return command

    async def _next(self) -> dict | None:
        line = await self._commands.readline()
        return json.loads(line) if line else None

    async def _run(self, client: Client, command: dict) -> None:
        number = command["id"]
        try:
            with anyio.CancelScope() as self._running[number]:
                self._write({"id": number, "result": await client.do(command)})
                return
            self._write({"id": number, "error": as_error(RuntimeError("the user gave up"))})
        except Exception as e:
            self._write({"id": number, "error": as_error(e)})
        finally:
            del self._running[number]

    def _answer(self, command: dict) -> None:
        if question := self._asked.pop(command["of"], None):  # else the server took it back
            answered, answer = question
            answer.append(command)
            answered.set()

    async def ask(self, method: str, params: Any) -> dict:
        """Puts a question of the server to the test, and returns what has the result or the error."""
        self._asks += 1
        number, answered, answer = self._asks, anyio.Event(), []
        self._asked[number] = answered, answer
        self._write({"ask": number, "method": method, "params": params})
        try:
            await answered.wait()
            return answer[0]
        finally:
            if self._asked.pop(number, None):
                self._write({"ask": number, "method": "notifications/cancelled"})

    def notice(self, method: str, params: Any, of: int = 0) -> None:
        """Tells of a notification that arrived; of is the command that it belongs to."""
        self._write({"method": method, "params": params} | ({"of": of} if of else {}))

    def progress(self, command: dict) -> Callable[..., Awaitable[None]] | None:
        """Returns what the SDK is to call with the progress of a command that asks for it."""
        if not command.get("progress"):
            return None

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            told = {"progress": progress, "total": total, "message": message}
            params = {key: value for key, value in told.items() if value is not None}
            self.notice("notifications/progress", params, command["id"])

        return heard

    def _write(self, line: dict) -> None:
        # No other write comes between, so that lines stay whole. Where Python does not buffer
        # (PYTHONUNBUFFERED), a write that a signal interrupts is a part of what was given.
        rest = memoryview((json.dumps(line) + "\n").encode())
        while rest:
            rest = rest[sys.stdout.buffer.write(rest) :]
        sys.stdout.buffer.flush()


def as_error(e: BaseException) -> dict:
    """Returns an error for the test, the first one of a group. Those of a server have an error each in the SDKs."""
    while isinstance(e, BaseExceptionGroup):
        e = e.exceptions[0]
    if (error := getattr(e, "error", None)) is not None:
        return plain(error)
    return {"code": 0, "message": f"{type(e).__name__}: {e}"}


def plain(model: Any) -> Any:
    """Returns what stands on the wire for a model of the SDK."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)
