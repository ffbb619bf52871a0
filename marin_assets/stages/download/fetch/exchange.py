"""One request and its answer, within limits of bytes on the wire, of bytes decoded, and of time by bytes.

An answer has `patience_s` seconds, and one more for each `min_bytes_per_s` bytes that arrive: a server that drips is
ended, and a slow line is not. The connection is to an address that `guard` has checked; TLS is verified for the name.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from marin_assets.stages.download.fetch.guard import FetchFailure, Guard
from marin_assets.stages.download.links.addresses import DEFAULT_PORTS, Url
from marin_assets.stages.download.warc.http_message import BodyTooLargeError, parse_response

CONNECT_S = 15.0
READ_BYTES = 2**16
HEADER_BYTES = 2**18
"""Bytes on the wire beyond those of the body: headers, and borders of chunks."""
ENCODINGS = "gzip, br"
MAX_EXPANSION = 16
"""A body that is cut decodes to at most this many times its limit."""
NO_BODY = (204, 205, 304)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one answer."""

    body_bytes: int
    """Limit of the body, encoded and decoded."""
    patience_s: float
    min_bytes_per_s: float
    content_types: tuple[str, ...] = ()
    """Types that are read; () reads all. An answer that states none is read."""
    is_cut: bool = False
    """Whether a longer body is cut in place of a failure."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer as it arrived, without the borders of chunks."""

    url: Url
    status: int
    headers: Mapping[str, str]
    """By names in lower case; the last of a repeated one."""
    body: bytes
    """Decoded."""
    request: bytes
    response: bytes
    """Head and encoded body."""
    date: str
    """Time of the request, as WARC-Date has it."""
    address: str
    """The address that answered."""


class Pace:
    """The time and the bytes that an answer may still take."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._began_s, self.received = limits, time.monotonic(), 0

    def left_s(self) -> float:
        """Seconds until the answer is too slow. Raises FetchFailure "slow" and "too_large"."""
        allowed_s = self._limits.patience_s + self.received / self._limits.min_bytes_per_s
        elapsed_s = time.monotonic() - self._began_s
        if elapsed_s >= allowed_s:
            raise FetchFailure("slow", f"{self.received} bytes came in {elapsed_s:.0f} s")
        if self.received > self._limits.body_bytes + HEADER_BYTES + READ_BYTES:
            raise FetchFailure("too_large", f"more than {self._limits.body_bytes} bytes came")
        return allowed_s - elapsed_s


class _PacedRaw(io.RawIOBase):
    """The bytes of a socket, by the pace."""

    def __init__(self, connection: socket.socket, pace: Pace) -> None:
        self._connection, self._pace = connection, pace

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(self._pace.left_s())
        count = self._connection.recv_into(buffer)
        self._pace.received += count
        return count


class _PacedSocket:
    """A socket as http.client reads and closes it."""

    def __init__(self, connection: socket.socket, pace: Pace) -> None:
        self._connection, self._pace = connection, pace

    def sendall(self, data: bytes) -> None:
        self._connection.settimeout(self._pace.left_s())
        self._connection.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_PacedRaw(self._connection, self._pace), READ_BYTES)

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True)
class Client:
    """Sends requests. Safe for many threads."""

    guard: Guard
    user_agent: str
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)

    def fetch(self, url: Url, limits: Limits, addresses: Sequence[str]) -> Answer:
        """Return the answer of one request; redirects and errors of the server are answers. Raises FetchFailure.

        `addresses` are those of `guard` for the host of `url`, so what was checked is what is connected.
        """
        pace = Pace(limits)
        try:
            connection, address = self._connected(url, addresses)
            with connection:
                return self._exchange(url, limits, _PacedSocket(connection, pace), address)
        except ssl.SSLCertVerificationError as error:
            raise FetchFailure("tls", error.verify_message) from None
        except TimeoutError:
            raise FetchFailure("slow" if pace.received else "timed_out", "no answer in time") from None
        except http.client.IncompleteRead:
            raise FetchFailure("cut", "the answer ended early") from None
        except http.client.RemoteDisconnected:
            raise FetchFailure("connection", "the server closed the connection without an answer") from None
        except ssl.SSLError as error:
            raise FetchFailure("tls", str(error.reason or error)) from None
        except (http.client.HTTPException, ValueError) as error:
            raise FetchFailure("bad_answer", f"{type(error).__name__}: {error}"[:200]) from None
        except OSError as error:
            raise FetchFailure("cut" if pace.received else "connection", error.strerror or str(error)) from None

    def _connected(self, url: Url, addresses: Sequence[str]) -> tuple[socket.socket, str]:
        """A connection to the first address that accepts it. Raises OSError."""
        failure = OSError("no address")
        for address in addresses:
            try:
                connection = socket.create_connection((address, url.port), timeout=CONNECT_S)
            except OSError as error:
                failure = error
                continue
            if url.scheme == "http":
                return connection, address
            try:
                return self.tls.wrap_socket(connection, server_hostname=url.host), address
            except BaseException:
                connection.close()
                raise
        raise failure

    def _exchange(self, url: Url, limits: Limits, connection: _PacedSocket, address: str) -> Answer:
        date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        request = self.request_of(url)
        connection.sendall(request)
        response = http.client.HTTPResponse(connection, method="GET")  # type: ignore[arg-type]
        response.begin()
        headers = {name.lower(): value for name, value in response.headers.items()}
        declared = headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status == 200 and limits.content_types and declared and declared not in limits.content_types:
            raise FetchFailure("content_type", declared[:80], status=200)
        encoded = b"" if response.status in NO_BODY else _body(response, limits)
        block = _head(response, len(encoded)) + encoded
        try:
            parsed = parse_response(block, limits.body_bytes * (MAX_EXPANSION if limits.is_cut else 1))
        except BodyTooLargeError:
            raise FetchFailure("too_large", f"the body decodes to more than {limits.body_bytes} bytes") from None
        if parsed is None:
            raise FetchFailure("bad_answer", "no status or headers of HTTP")
        return Answer(
            url=url,
            status=response.status,
            headers=headers,
            body=parsed.body,
            request=request,
            response=block,
            date=date,
            address=address,
        )

    def request_of(self, url: Url) -> bytes:
        """The request, as it is sent and recorded."""
        host = f"[{url.host}]" if ":" in url.host else url.host
        port = "" if DEFAULT_PORTS[url.scheme] == url.port else f":{url.port}"
        lines = (
            f"GET {url.target} HTTP/1.1",
            f"Host: {host}{port}",
            f"User-Agent: {self.user_agent}",
            "Accept: text/html,application/xhtml+xml,*/*;q=0.5",
            f"Accept-Encoding: {ENCODINGS}",
            "Connection: close",
        )
        return "".join(f"{line}\r\n" for line in (*lines, "")).encode("ascii")


def _body(response: http.client.HTTPResponse, limits: Limits) -> bytes:
    """The encoded body. Raises FetchFailure "too_large" and "cut"."""
    if response.length is not None and response.length > limits.body_bytes and not limits.is_cut:
        raise FetchFailure("too_large", f"Content-Length is {response.length}")
    parts, size = list[bytes](), 0
    while part := response.read1(READ_BYTES):
        parts.append(part)
        size += len(part)
        if size > limits.body_bytes and limits.is_cut:
            return b"".join(parts)[: limits.body_bytes]
        if size > limits.body_bytes:
            raise FetchFailure("too_large", f"more than {limits.body_bytes} bytes came")
    if response.length:
        raise FetchFailure("cut", f"{response.length} bytes of Content-Length are missing")
    return b"".join(parts)


def _head(response: http.client.HTTPResponse, body_bytes: int) -> bytes:
    """The head of the answer. A chunked one is stored without chunks, so its headers are renamed, as crawls do."""
    lines = [f"HTTP/1.1 {response.status} {response.reason}".rstrip()]
    for name, value in response.headers.items():
        is_renamed = name.lower() in ("transfer-encoding", "content-length")
        lines.append(f"{'X-Crawler-' if is_renamed else ''}{name}: {' '.join(value.split())}")
    lines.append(f"Content-Length: {body_bytes}")
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1", "replace")


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The seconds that Retry-After states, as a number or a date; None without one."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return float(text)
    try:
        date = parsedate_to_datetime(text)
        return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def user_agent_of(agent: str, contact: str) -> str:
    """The name of the crawler with its contact, as requests have it."""
    return f"{agent}/1.0 (+{contact})"


def types_of(content_types: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in content_types)
