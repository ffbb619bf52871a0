"""A Secret Manager on loopback, for the tests of jobs."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class SecretServer:
    """Answers as Google's service does. What is not among its secrets is 404."""

    def __init__(self) -> None:
        self.secrets: dict[str, bytes] = {}
        """Resource -> value; "projects/p/secrets/s/versions/latest"."""
        self.status: list[int] = []
        """What the next requests are answered with, instead."""
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                self._answer(*outer.answer(self.path))

            def _answer(self, status: int, body: object) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Nothing: the test's output is its own."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, path: str) -> tuple[int, object]:
        name = path.removeprefix("/v1/").removesuffix(":access")
        status = self.status.pop(0) if self.status else 200 if name in self.secrets else 404
        if status != 200:
            return status, {"error": {"code": status, "message": "as the test\nwants it"}}
        return 200, {"name": name, "payload": {"data": base64.b64encode(self.secrets[name]).decode()}}

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def secret_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SecretServer]:
    server = SecretServer()
    monkeypatch.setenv("MARIN_SECRET_MANAGER_URL", server.url)
    monkeypatch.setattr("marin_resources.configuration.secret_manager.PAUSE_S", 0.01)
    yield server
    server.stop()
