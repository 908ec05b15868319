"""A server on fastmcp 4 that serves the tokens of one issuer alone, at http://127.0.0.1:PORT/mcp.

    python fastmcp_protected.py PORT ISSUER

The tool whoami says what its caller's token says, and GET /control which tokens came, refused
ones among them, by their claims. It does what node/protected-server.mjs does.
"""

import base64
import json
import sys
from typing import Any

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

port, issuer = int(sys.argv[1]), sys.argv[2]
url = f"http://127.0.0.1:{port}/mcp"
came: list[dict[str, Any]] = []

verifier = JWTVerifier(
    jwks_uri=f"{issuer}/jwks", issuer=issuer, audience=url, algorithm="RS256", required_scopes=["read"]
)
server = FastMCP("protected", version="1", auth=verifier)


@server.tool
async def whoami() -> str:
    """Says what your token says."""
    token = get_access_token()
    said = token.claims if token else {}
    return json.dumps({k: said.get(k) for k in ("sub", "aud", "jti")} | {"client": said.get("client_id")})


@server.custom_route("/.well-known/oauth-protected-resource/mcp", methods=["GET"])
async def metadata(_: Request) -> Response:
    """Names the issuer, as it calls itself: fastmcp's own metadata adds a slash."""
    return JSONResponse({"resource": url, "authorization_servers": [issuer], "scopes_supported": ["read"]})


@server.custom_route("/control", methods=["GET"])
async def control(_: Request) -> Response:
    """Says which tokens came."""
    return JSONResponse(came)


def claims_of(header: bytes) -> dict[str, Any]:
    """Returns what a token says, verified or not."""
    try:
        part = header.decode().split(".")[1]
        return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (IndexError, ValueError):
        return {}


class Noting:
    """Keeps what the tokens of requests say."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/mcp":
            of = claims_of(dict(scope["headers"]).get(b"authorization", b""))
            came.append({k: of.get(k) for k in ("sub", "aud", "jti")} | {"client": of.get("client_id")})
        await self.app(scope, receive, send)


uvicorn.run(server.http_app(middleware=[Middleware(Noting)]), host="127.0.0.1", port=port, log_level="warning")
