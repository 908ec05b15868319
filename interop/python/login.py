"""Logs a client of the Python SDK 2.x in, with no browser of its own: see Login in interop/remote."""

from urllib.parse import quote

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken


class Login:
    """Keeps tokens in memory, and has the test follow authorization URLs."""

    def __init__(self, login: dict):
        self.login = login
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None
        self.back: dict = {}

    def provider(self, url: str) -> OAuthClientProvider:
        return OAuthClientProvider(
            server_url=url,
            client_metadata=OAuthClientMetadata(
                client_name="interop-python",
                redirect_uris=[self.login["redirect"]],
                token_endpoint_auth_method="none",
            ),
            storage=self,
            redirect_handler=self.browse,
            callback_handler=self.came_back,
            client_metadata_url=self.login.get("document"),
        )

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client: OAuthClientInformationFull) -> None:
        self.client = client

    async def browse(self, url: str) -> None:
        async with httpx2.AsyncClient() as http:
            answer = await http.get(f"{self.login['browser']}?url={quote(url, safe='')}")
        self.back = answer.json()
        if error := self.back.get("error"):
            raise RuntimeError(f"the authorization server refused: {error}")

    async def came_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=self.back["code"], state=self.back.get("state"), iss=self.back.get("iss"))
