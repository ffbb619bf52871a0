"""One request to a dashboard: with the token, within a time, and with an error of ours for whatever goes wrong.

The HTTP client's own errors hold the headers that were sent, token and all, so none of them is ever raised on, nor kept
as the cause of one of ours.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from marin_resources.ray_tpu.cluster.api.errors import ApiError, UnreachableError
from marin_resources.ray_tpu.cluster.api.responses import Request, error_of, is_page, no_dashboard
from marin_resources.ray_tpu.cluster.api.token import Token

if TYPE_CHECKING:
    import aiohttp

TokenFinder = Callable[[], Token | None]
KEEP_ALIVE_S = 30
CLOSE_TIMEOUT_S = 1.0
"""How long a server may take to say goodbye."""


class Dashboard:
    """A dashboard at an address. An async context manager: one pool of connections."""

    def __init__(self, address: str, token: Token | TokenFinder | None, timeout_s: float) -> None:
        self.address = address.rstrip("/")
        self.timeout_s = timeout_s
        self._token = token if isinstance(token, Token) else None
        self._find = token if callable(token) else None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Dashboard:
        import aiohttp

        if self._find is not None:
            self._token = await asyncio.to_thread(self._find)
        self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def ask(self, request: Request, *, body: Any = None, data: bytes | None = None, total_s: float = 0) -> Any:
        """The JSON of the answer; None if it is empty. `total_s` goes before the timeout of the dashboard."""
        status, text = await self._exchange(request, body, data, total_s or self.timeout_s)
        if status != 200:
            raise error_of(request, status, text, self.address, self._token)
        if is_page(text):
            raise no_dashboard(self.address, f"it answered a page of HTML to {request.method} {request.path}")
        try:
            return json.loads(text) if text else None
        except ValueError:
            trouble = f"{request.what}: {self.address} answered {len(text)} characters that are no JSON."
        raise UnreachableError(trouble)

    async def listen(self, request: Request, still: Callable[[], Awaitable[object]]) -> AsyncGenerator[str]:
        """What a websocket sends, until it closes. Raises UnreachableError if it is cut.

        `still` is called after each silence, and raises what ends the listening: a dashboard never answers a ping.
        """
        import aiohttp

        connection = await self._connected(request)
        next_message = asyncio.ensure_future(connection.receive())
        try:
            while True:
                while not (await asyncio.wait([next_message], timeout=self.timeout_s))[0]:
                    await still()
                message = next_message.result()
                if message.type is not aiohttp.WSMsgType.TEXT:
                    break
                yield message.data
                next_message = asyncio.ensure_future(connection.receive())
        finally:
            next_message.cancel()
            await connection.close()
        if message.type is aiohttp.WSMsgType.ERROR or connection.close_code != aiohttp.WSCloseCode.OK:
            raise UnreachableError(f"{request.what}: the connection to {self.address} was cut.")

    async def _connected(self, request: Request) -> aiohttp.ClientWebSocketResponse:
        import aiohttp

        try:
            async with asyncio.timeout(self.timeout_s):
                connected = await self._open().ws_connect(
                    f"{self.address}{request.path}",
                    headers=self._headers(),
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT_S),
                    max_msg_size=0,  # a message is lines of a log, and a line may be long
                )
                _keep_alive(connected.get_extra_info("socket"))
                return connected
        except aiohttp.WSServerHandshakeError as error:
            trouble = error_of(request, error.status, "", self.address, self._token)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            trouble = self._trouble(request.what, error)
        raise trouble  # here, where it has no context

    async def _exchange(self, request: Request, body: Any, data: bytes | None, total_s: float) -> tuple[int, str]:
        import aiohttp

        try:
            async with self._open().request(
                request.method,
                f"{self.address}{request.path}",
                json=body,
                data=data,
                headers=self._headers(),
                allow_redirects=False,  # the token is for this address alone
                timeout=aiohttp.ClientTimeout(total=total_s, sock_connect=self.timeout_s),
            ) as answer:
                return answer.status, await answer.text(errors="replace")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            trouble = self._trouble(request.what, error)
        raise trouble  # as above

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError(f"The jobs of {self.address} are asked for outside of `async with`.")
        return self._session

    def _headers(self) -> dict[str, str]:
        return self._token.header() if self._token else {}

    def _trouble(self, what: str, error: Exception) -> Exception:
        import aiohttp

        if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
            return ApiError(f"{what}: {self.address} does not speak https with a certificate that is trusted here.")
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return UnreachableError(f"{what}: the name of {self.address} is not known to this machine.")
        if isinstance(error, aiohttp.ClientConnectorError):
            return UnreachableError(f"{what}: {self.address} cannot be connected to ({error.strerror or 'no reason'}).")
        if isinstance(error, TimeoutError):
            return UnreachableError(f"{what}: {self.address} did not answer within {self.timeout_s:g} s.")
        if isinstance(error, aiohttp.InvalidURL | ValueError) and not isinstance(error, aiohttp.ClientResponseError):
            return ApiError(f"{what}: {self.address!r} is no address, expected one such as http://10.0.0.5:8265.")
        return UnreachableError(f"{what}: the connection to {self.address} was cut ({type(error).__name__}).")


def _keep_alive(connection: socket.socket | None) -> None:
    """Let the kernel find out that the other end is gone, where no word of that comes through."""
    if connection is None:  # it is closed already
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):  # on Linux; else after the kernel's two hours
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEP_ALIVE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEP_ALIVE_S)
