"""A gateway on loopback in front of a server with OpenAI's API: it wants a key, and fails as gateways do when a test
has it so.

with Gateway(server.url, key="sk-1") as gateway:
    gateway.failures = ["429", "503", ""]   # of the next requests that are posted, "" of none
    gateway.answer = lambda path, content: b"{}"  # in place of the server's answers
    gateway.passed                                # the bodies that got to the server
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import requests

FAILURES = {"429": (429, {"Retry-After": "0.2"}), "503": (503, {}), "500": (500, {}), "400": (400, {})}


class Gateway:
    def __init__(self, upstream: str, *, key: str | None = None) -> None:
        self.upstream, self.key = upstream, key
        self.failures: list[str] = []
        self.answer: Callable[[str, bytes], bytes] | None = None
        self.passed: list[dict[str, Any]] = []
        self.most_at_once = 0
        self.stops_after: int | None = None
        """Requests that are passed on; later ones wait for ever."""
        self._at_once = 0
        self._changing = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def next_failure(self) -> str | None:
        with self._changing:
            return self.failures.pop(0) if self.failures else None

    def pass_on(self, method: str, path: str, content: bytes) -> tuple[int, bytes]:
        with self._changing:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            got = requests.request(method, f"{self.upstream}{path}", data=content or None, timeout=60)
        finally:
            with self._changing:
                self._at_once -= 1
                if method == "POST":
                    self.passed.append(json.loads(content))
        if self.answer is not None and method == "POST":
            return 200, self.answer(path, got.content)
        return got.status_code, got.content


def _handler(gateway: Gateway) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve("GET", b"")

        def do_POST(self) -> None:
            self._serve("POST", self.rfile.read(int(self.headers["Content-Length"])))

        def _serve(self, method: str, content: bytes) -> None:
            given = self.headers.get("Authorization")
            if gateway.key is not None and given != f"Bearer {gateway.key}":
                self._send(401, json.dumps({"error": {"message": f"no such key: {given}"}}).encode(), {})
                return
            failure = gateway.next_failure() if method == "POST" else None
            if failure == "drop":
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
            elif failure:
                status, headers = FAILURES[failure]
                self._send(status, json.dumps({"error": {"message": f"a {status} of the gateway"}}).encode(), headers)
            elif method == "POST" and gateway.stops_after is not None and len(gateway.passed) >= gateway.stops_after:
                threading.Event().wait()
            else:
                self._send(*gateway.pass_on(method, self.path, content), {})

        def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None: ...

    return Handler
