"""HTTP requests that end within a time limit as a whole, and whose headers and bodies stay with their origin.

`urllib.request.urlopen` has a time limit for each read, so a server that sends a byte now and then holds it for ever.
It follows a redirect of a POST with a GET without the body, of a HEAD with a GET, and takes `Authorization` along.

Here a redirect is followed with the same method. To another origin (scheme, host and port; https in place of http is
the same) it takes no `Authorization`, and a request with a body is not sent there at all.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any
from urllib.parse import SplitResult, urlsplit

BLOCK_BYTES = 65536
FAILURES = (OSError, http.client.HTTPException, ValueError)
"""The errors of a request that has no answer. `urllib.error.HTTPError` is one of them: an answer with an error."""


class TooSlowError(OSError):
    """An answer that is not whole within the time limit."""


class OtherOriginError(OSError):
    """A redirect of a request with a body to another origin."""

    def __init__(self, origin: str) -> None:
        super().__init__(f"it redirects to {origin!r}")
        self.origin = origin


@dataclass(frozen=True, kw_only=True)
class Answer:
    url: str
    """The address that it came from, after redirects."""
    headers: Message
    body: bytes


def answer_to(request: urllib.request.Request, within_s: float, most_bytes: int = 0) -> Answer:
    """The answer, with at most `most_bytes` bytes of its body. Raises FAILURES."""
    connections: list[_Connection] = []
    done: list[Answer] = []
    failed: list[BaseException] = []
    ends_s = time.monotonic() + within_s

    def ask() -> None:
        try:
            opener = urllib.request.build_opener(_SameOrigin, _Http(connections), _Https(connections))
            with opener.open(request, timeout=within_s) as answer:
                done.append(Answer(url=answer.url, headers=answer.headers, body=_body(answer, most_bytes, ends_s)))
        except BaseException as error:  # the waiting thread raises it
            failed.append(error)

    thread = threading.Thread(target=ask, daemon=True, name="http request")  # a look-up of a name cannot be ended
    thread.start()
    thread.join(within_s)
    if thread.is_alive():
        for connection in connections:
            connection.end()
        raise TooSlowError(f"no whole answer within {within_s:g} s")
    if failed:
        raise failed[0]
    return done[0]


def _body(answer: Any, most_bytes: int, ends_s: float) -> bytes:
    body = b""
    while len(body) < most_bytes:
        if time.monotonic() >= ends_s:
            raise TooSlowError("an answer without an end")
        block = answer.read1(min(BLOCK_BYTES, most_bytes - len(body)))
        if not block:
            break
        body += block
    return body


class _SameOrigin(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request:
        """The request that follows the redirect."""
        if urlsplit(newurl).scheme not in ("http", "https") or (code == 303 and req.data is not None):
            raise urllib.error.HTTPError(req.full_url, code, msg, headers, fp)
        is_same = is_same_origin(req.full_url, newurl)
        if req.data is not None and not is_same:
            raise OtherOriginError(origin_of(newurl))
        kept = {name: value for name, value in req.headers.items() if is_same or name.lower() != "authorization"}
        return urllib.request.Request(newurl, req.data, kept, method=req.get_method())


def is_same_origin(address: str, other: str) -> bool:
    """Whether a secret for one address may be sent to the other."""
    (before, port), (after, other_port) = _with_port(address), _with_port(other)
    if (before.scheme, after.scheme) == ("http", "https"):
        return (before.hostname, port, other_port) == (after.hostname, 80, 443)
    return (before.scheme, before.hostname, port) == (after.scheme, after.hostname, other_port)


def _with_port(url: str) -> tuple[SplitResult, int | None]:
    parts = urlsplit(url)
    return parts, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


class _Connection:
    """A connection that another thread can end."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._connect = connection.connect
        self._socket: socket.socket | None = None
        connection.connect = self._kept  # type: ignore[method-assign]

    def _kept(self) -> None:
        self._connect()
        self._socket = self._connection.sock  # the connection forgets it when the answer begins

    def end(self) -> None:
        for open_socket in (self._connection.sock, self._socket):
            if open_socket is not None:
                with contextlib.suppress(OSError):
                    open_socket.shutdown(socket.SHUT_RDWR)


def _kept(kind: Callable[..., Any], connections: list[_Connection]) -> Callable[..., Any]:
    def connection(*arguments: Any, **options: Any) -> Any:
        made = kind(*arguments, **options)
        connections.append(_Connection(made))
        return made

    return connection


class _Http(urllib.request.HTTPHandler):
    def __init__(self, connections: list[_Connection]) -> None:
        super().__init__()
        self._connections = connections

    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_kept(http.client.HTTPConnection, self._connections), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, connections: list[_Connection]) -> None:
        super().__init__()
        self._connections = connections

    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_kept(http.client.HTTPSConnection, self._connections), req)
