"""Puts the client of the Python SDK 2.x under remote control: see remote.py.

Its argument is the mode: auto (the SDK's default), legacy, or a modern revision.
With hasty behind that it opens a legacy session as soon as the SDK does by itself. On
a modern session it listens for the lists that the server declares to change; to
subscribe to a resource is to open a listen stream for it.
"""

import sys
import warnings
from contextlib import asynccontextmanager
from typing import Any, AsyncIterator

import anyio
import anyio.abc
import mcp
import mcp.client.session
import mcp_types as types
from mcp import MCPDeprecationWarning, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    SubscriptionLost,
    ToolsListChanged,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel
from login import Login
from remote import Remote, plain

# The SDK gives up asking after 10 s, and on a busy machine an interpreter takes that long to start.
if "hasty" not in sys.argv[2:]:
    mcp.client.session.DISCOVER_TIMEOUT_SECONDS = 60.0

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
EVENTS = {
    ToolsListChanged: "notifications/tools/list_changed",
    PromptsListChanged: "notifications/prompts/list_changed",
    ResourcesListChanged: "notifications/resources/list_changed",
    ResourceUpdated: "notifications/resources/updated",
}


class Client:
    def __init__(self, remote: Remote, target: dict, mode: str):
        self.remote = remote
        self.streams: anyio.abc.TaskGroup  # listen streams, a task each
        self.subscribed: dict[str, anyio.CancelScope] = {}  # ends the stream of a URI
        self.roots = target.get("roots") or {"roots": []}
        capabilities = target["capabilities"]
        sampling = capabilities.get("sampling")
        self.sdk = mcp.Client(
            transport(target),
            mode=mode,
            sampling_callback=self.sample if sampling is not None else None,
            sampling_capabilities=types.SamplingCapability.model_validate(sampling or {}),
            elicitation_callback=self.elicit if "elicitation" in capabilities else None,
            list_roots_callback=self.list_roots if "roots" in capabilities else None,
            message_handler=self.heard,
            client_info=types.Implementation(name="interop-python-2", version="1"),
        )

    @property
    def hello(self) -> dict:
        sdk = self.sdk
        told = {
            "protocolVersion": sdk.protocol_version,
            "serverInfo": sdk.server_info and plain(sdk.server_info),
            "capabilities": plain(sdk.server_capabilities),
            "instructions": sdk.instructions,
        }
        return {key: value for key, value in told.items() if value is not None}

    async def sample(self, _: Any, params: types.CreateMessageRequestParams) -> Any:
        return await self.ask("sampling/createMessage", params, types.CreateMessageResult)

    async def elicit(self, _: Any, params: types.ElicitRequestParams) -> Any:
        return await self.ask("elicitation/create", params, types.ElicitResult)

    async def ask(self, method: str, params: Any, result: type[BaseModel]) -> Any:
        """Returns the answer as the SDK has it: a model of the result, or of the error instead of one."""
        answer = await self.remote.ask(method, plain(params))
        if error := answer.get("error"):
            return types.ErrorData.model_validate(error)
        return result.model_validate(answer["result"])

    async def list_roots(self, _: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate(self.roots)

    async def heard(self, message: Any) -> None:
        """Tells of what the server sends by itself.

        Progress is told to the call that asked, and what came on a listen stream by
        the task that reads it.
        """
        if isinstance(message, Exception | types.ProgressNotification):
            return
        told = plain(message)
        params = told.get("params", {})
        if SUBSCRIPTION not in params.get("_meta", {}):
            self.remote.notice(told["method"], params)

    async def do(self, command: dict) -> Any:
        result = await self.request(command["method"], command.get("params") or {}, command)
        return plain(result) if result else {}

    async def request(self, method: str, params: dict, command: dict) -> Any:
        sdk, cursor, meta = self.sdk, params.get("cursor"), params.get("_meta")
        match method:
            case "ping":
                return await sdk.send_ping()
            case "tools/list":
                return await sdk.list_tools(cursor=cursor)
            case "resources/list":
                return await sdk.list_resources(cursor=cursor)
            case "resources/templates/list":
                return await sdk.list_resource_templates(cursor=cursor)
            case "prompts/list":
                return await sdk.list_prompts(cursor=cursor)
            case "tools/call":
                heard = self.remote.progress(command)
                return await sdk.call_tool(params["name"], params.get("arguments"), progress_callback=heard, meta=meta)
            case "resources/read":
                return await sdk.read_resource(params["uri"])
            case "prompts/get":
                return await sdk.get_prompt(params["name"], params.get("arguments"))
            case "completion/complete":
                ref = types.CompleteRequestParams.model_validate(params).ref
                return await sdk.complete(ref, params["argument"], params.get("context", {}).get("arguments"))
            case "logging/setLevel":
                return await sdk.set_logging_level(params["level"])
            case "resources/subscribe":
                return await (self.subscribe(params["uri"]) if self.modern else sdk.subscribe_resource(params["uri"]))
            case "resources/unsubscribe" if self.modern:
                return self.subscribed.pop(params["uri"]).cancel()
            case "resources/unsubscribe":
                return await sdk.unsubscribe_resource(params["uri"])
            case "notifications/roots/list_changed":
                self.roots = params
                return await sdk.send_roots_list_changed()
        raise RuntimeError(f"unknown command {method}")

    @property
    def modern(self) -> bool:
        return self.sdk.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def listen_for_lists(self) -> None:
        has = self.sdk.server_capabilities
        lists = {"tools": has.tools, "prompts": has.prompts, "resources": has.resources}
        if want := {f"{kind}_list_changed": True for kind, of in lists.items() if of and of.list_changed}:
            await self.streams.start(self.listen, want)

    async def subscribe(self, uri: str) -> None:
        stop, honored = await self.streams.start(self.listen, {"resource_subscriptions": [uri]})
        if uri not in (honored.resource_subscriptions or ()):
            stop.cancel()
            raise RuntimeError(f"the server did not grant {uri}")
        self.subscribed[uri] = stop

    async def listen(self, want: dict, *, task_status: anyio.abc.TaskStatus) -> None:
        """Opens a listen stream and tells what it brings, until it ends or is given up."""
        with anyio.CancelScope() as stop:
            async with self.sdk.listen(**want) as events:
                task_status.started((stop, events.honored))
                try:
                    async for event in events:
                        params = {"uri": event.uri} if isinstance(event, ResourceUpdated) else {}
                        self.remote.notice(EVENTS[type(event)], params)
                except SubscriptionLost as e:
                    print("listening:", e, file=sys.stderr)


def transport(target: dict) -> Any:
    match target["transport"]:
        case "http" if login := target.get("login"):
            auth = Login(login).provider(target["url"])
            return streamable_http_client(target["url"], http_client=create_mcp_http_client(auth=auth))
        case "http":
            return target["url"]
        case "sse":
            return sse_client(target["url"])
        case "stdio":
            command, *args = target["argv"]
            return StdioServerParameters(command=command, args=args)
    raise RuntimeError(f"the SDK has no transport {target['transport']}")


@asynccontextmanager
async def connect(remote: Remote, target: dict) -> AsyncIterator[Client]:
    client = Client(remote, target, (sys.argv[1:] or ["auto"])[0])
    async with client.sdk, anyio.create_task_group() as client.streams:
        if client.modern:
            await client.listen_for_lists()
        yield client
        client.streams.cancel_scope.cancel()


warnings.simplefilter("ignore", MCPDeprecationWarning)  # what is deprecated is still to be carried over
anyio.run(Remote().run, connect)
