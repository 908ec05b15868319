"""Puts the client of the Python SDK 1.x under remote control: see remote.py."""

from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, AsyncIterator

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.websocket import websocket_client
from pydantic import AnyUrl, BaseModel
from remote import Remote, plain


class Client:
    def __init__(self, remote: Remote, target: dict):
        self.remote = remote
        self.roots = target.get("roots") or {"roots": []}
        self.hello: Any = None
        self.session: ClientSession

    def open(self, streams: tuple, capabilities: dict) -> ClientSession:
        sampling = capabilities.get("sampling")
        self.session = ClientSession(
            *streams[:2],
            sampling_callback=self.sample if sampling is not None else None,
            sampling_capabilities=types.SamplingCapability.model_validate(sampling or {}),
            elicitation_callback=self.elicit if "elicitation" in capabilities else None,
            list_roots_callback=self.list_roots if "roots" in capabilities else None,
            message_handler=self.heard,
            client_info=types.Implementation(name="interop-python-1", version="1"),
        )
        return self.session

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
        """Tells of what the server sends by itself; progress is told to the call that asked."""
        if isinstance(message, types.ServerNotification) and not isinstance(message.root, types.ProgressNotification):
            told = plain(message)
            self.remote.notice(told["method"], told.get("params", {}))

    async def do(self, command: dict) -> Any:
        result = await self.request(command["method"], command.get("params") or {}, command)
        return plain(result) if result else {}

    async def request(self, method: str, params: dict, command: dict) -> Any:
        session, page = self.session, types.PaginatedRequestParams.model_validate(params)
        match method:
            case "ping":
                return await session.send_ping()
            case "tools/list":
                return await session.list_tools(params=page)
            case "resources/list":
                return await session.list_resources(params=page)
            case "resources/templates/list":
                return await session.list_resource_templates(params=page)
            case "prompts/list":
                return await session.list_prompts(params=page)
            case "tools/call":
                heard = self.remote.progress(command)
                return await session.call_tool(params["name"], params.get("arguments"), progress_callback=heard)
            case "resources/read":
                return await session.read_resource(AnyUrl(params["uri"]))
            case "prompts/get":
                return await session.get_prompt(params["name"], params.get("arguments"))
            case "completion/complete":
                ref = types.CompleteRequestParams.model_validate(params).ref
                context = params.get("context", {}).get("arguments")
                return await session.complete(ref, params["argument"], context)
            case "logging/setLevel":
                return await session.set_logging_level(params["level"])
            case "resources/subscribe":
                return await session.subscribe_resource(AnyUrl(params["uri"]))
            case "resources/unsubscribe":
                return await session.unsubscribe_resource(AnyUrl(params["uri"]))
            case "notifications/roots/list_changed":
                self.roots = params
                return await session.send_roots_list_changed()
        raise RuntimeError(f"unknown command {method}")


def transport(target: dict) -> Any:
    match target["transport"]:
        case "http":
            return streamable_http_client(target["url"])
        case "sse":
            return sse_client(target["url"])
        case "ws":
            return websocket_client(target["url"])
        case "stdio":
            command, *args = target["argv"]
            return stdio_client(StdioServerParameters(command=command, args=args))
    raise RuntimeError(f"the SDK has no transport {target['transport']}")


@asynccontextmanager
async def connect(remote: Remote, target: dict) -> AsyncIterator[Client]:
    client = Client(remote, target)
    async with AsyncExitStack() as stack:
        streams = await stack.enter_async_context(transport(target))
        session = await stack.enter_async_context(client.open(streams, target["capabilities"]))
        client.hello = plain(await session.initialize())
        yield client


anyio.run(Remote().run, connect)
