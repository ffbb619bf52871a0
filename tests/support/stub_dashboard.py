"""What a Ray dashboard says of its version and its nodes, on loopback: for versions and clocks that no real one has."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class StubDashboard:
    """Change its fields, and the next answer has them."""

    def __init__(self) -> None:
        self.ray_version = "2.60.0"
        self.nodes: list[Mapping[str, float]] = [{"CPU": 4.0}]
        self.token = ""
        """Asked for, unless it is empty."""
        self.ahead_s = 0.0
        """How far its clock is ahead."""
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                allowed = not stub.token or self.headers.get("Authorization") == f"Bearer {stub.token}"
                body = json.dumps(stub._answer(self.path) if allowed else {"error": "invalid token"}).encode()
                self.send_response(200 if allowed else 401)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def date_time_string(self, timestamp: float | None = None) -> str:
                return super().date_time_string(time.time() + stub.ahead_s)

            def log_message(self, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def _answer(self, path: str) -> Any:
        if path.startswith("/api/version"):
            return {"version": "4", "ray_version": self.ray_version, "session_name": "session_of_a_stub"}
        nodes = [{"state": "ALIVE", "resources_total": dict(node)} for node in self.nodes]
        return {"data": {"result": {"result": nodes}}}


@contextmanager
def stub_dashboard() -> Iterator[StubDashboard]:
    """It serves until the block ends."""
    stub = StubDashboard()
    threading.Thread(target=stub.server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield stub
    finally:
        stub.server.shutdown()
        stub.server.server_close()
