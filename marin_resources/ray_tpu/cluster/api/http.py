"""One HTTP request to a dashboard: with the token, within a time limit, every failure as one of our errors.

The HTTP client's own errors hold the request's headers, token included. So none of them is re-raised, or kept as the
cause of one of ours.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from marin_resources.ray_tpu.cluster.api.responses import ApiRequest, error_for, is_html, not_a_dashboard
from marin_resources.ray_tpu.cluster.api.token import Token
from marin_resources.ray_tpu.cluster.errors import ApiError, UnreachableError

if TYPE_CHECKING:
    import aiohttp

TokenFinder = Callable[[], Token | None]
KEEP_ALIVE_S = 30
CLOSE_TIMEOUT_S = 1.0
"""Time limit of a websocket's closing handshake."""


class Dashboard:
    """A dashboard at an address. An async context manager with one pool of connections."""

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

    async def request(
        self, request: ApiRequest, *, body: Any = None, data: bytes | None = None, total_s: float = 0
    ) -> Any:
        """Return the JSON of the response; None if it is empty. `total_s` replaces the default timeout."""
        status, text = await self._exchange(request, body, data, total_s or self.timeout_s)
        if status != 200:
            raise error_for(request, status, text, self.address, self._token)
        if is_html(text):
            raise not_a_dashboard(self.address, f"it answered HTML to {request.method} {request.path}")
        try:
            return json.loads(text) if text else None
        except ValueError:
            sentence = f"{request.action}: {self.address} answered {len(text)} characters that are no JSON."
        raise UnreachableError(sentence)  # here, where it has no context

    async def stream(self, request: ApiRequest, check_alive: Callable[[], Awaitable[object]]) -> AsyncGenerator[str]:
        """Yield the messages of a websocket until it closes. Raise UnreachableError if it is cut.

        `check_alive` is called after each `timeout_s` of silence, and raises to end the stream: a dashboard never
        answers a ping.
        """
        import aiohttp

        connection = await self._connected(request)
        next_message = asyncio.ensure_future(connection.receive())
        try:
            while True:
                while not (await asyncio.wait([next_message], timeout=self.timeout_s))[0]:
                    await check_alive()
                message = next_message.result()
                if message.type is not aiohttp.WSMsgType.TEXT:
                    break
                yield message.data
                next_message = asyncio.ensure_future(connection.receive())
        finally:
            next_message.cancel()
            await connection.close()
        if message.type is aiohttp.WSMsgType.ERROR or connection.close_code != aiohttp.WSCloseCode.OK:
            raise UnreachableError(f"{request.action}: the connection to {self.address} was cut.")

    async def _connected(self, request: ApiRequest) -> aiohttp.ClientWebSocketResponse:
        import aiohttp

        try:
            async with asyncio.timeout(self.timeout_s):
                connected = await self._open().ws_connect(
                    f"{self.address}{request.path}",
                    headers=self._headers(),
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT_S),
                    max_msg_size=0,  # no limit: a line of a log may be long
                )
                _keep_alive(connected.get_extra_info("socket"))
                return connected
        except aiohttp.WSServerHandshakeError as error:
            translated = error_for(request, error.status, "", self.address, self._token)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            translated = self._translate(request.action, error)
        raise translated  # here, where it has no context

    async def _exchange(self, request: ApiRequest, body: Any, data: bytes | None, total_s: float) -> tuple[int, str]:
        import aiohttp

        try:
            async with self._open().request(
                request.method,
                f"{self.address}{request.path}",
                json=body,
                data=data,
                headers=self._headers(),
                allow_redirects=False,  # the token is for this address only
                timeout=aiohttp.ClientTimeout(total=total_s, sock_connect=self.timeout_s),
            ) as response:
                return response.status, await response.text(errors="replace")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            translated = self._translate(request.action, error)
        raise translated  # here, where it has no context

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError(f"A request to {self.address} was sent outside of `async with`.")
        return self._session

    def _headers(self) -> dict[str, str]:
        return self._token.header() if self._token else {}

    def _translate(self, action: str, error: Exception) -> Exception:
        import aiohttp

        if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
            return ApiError(f"{action}: {self.address} does not speak https with a certificate that is trusted here.")
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return UnreachableError(f"{action}: the name of {self.address} is not known to this machine.")
        if isinstance(error, aiohttp.ClientConnectorError):
            return UnreachableError(
                f"{action}: {self.address} cannot be connected to ({error.strerror or 'no reason'})."
            )
        if isinstance(error, TimeoutError):
            return UnreachableError(f"{action}: {self.address} did not answer within {self.timeout_s:g} s.")
        if isinstance(error, aiohttp.InvalidURL | ValueError) and not isinstance(error, aiohttp.ClientResponseError):
            return ApiError(f"{action}: {self.address!r} is no address, expected one such as http://10.0.0.5:8265.")
        return UnreachableError(f"{action}: the connection to {self.address} was cut ({type(error).__name__}).")


def _keep_alive(connection: socket.socket | None) -> None:
    """Let the kernel detect a peer that vanished without closing the connection."""
    if connection is None:  # already closed
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):  # Linux; elsewhere the kernel's default of two hours
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEP_ALIVE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEP_ALIVE_S)
