"""The API of the Hugging Face hub for one dataset, and a file at a URL, on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DATASET = "hf://datasets/allenai/c4"


class Hub:
    """The commits of the dataset's branches, and the headers of the file. Answers with `status`."""

    def __init__(self) -> None:
        self.commits = {"main": "5e1b3c" + "0" * 34, "dev/v2": "d" * 40}
        self.headers = {"ETag": '"abc-12"'}
        self.status = 200
        self.tokens: list[str | None] = []
        self.moved_to = ""
        """Another hub, to which this one redirects."""
        self.body: bytes | None = None
        """In place of the answer."""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.tokens.append(self.headers["Authorization"])
                branch = self.path.removeprefix("/api/datasets/allenai/c4/revision/").replace("%2F", "/")
                self.send_response(307 if hub.moved_to else hub.status if branch in hub.commits else 404)
                if hub.moved_to:
                    self.send_header("Location", f"{hub.moved_to}{self.path}")
                self.end_headers()
                found = json.dumps({"id": "allenai/c4", "sha": hub.commits.get(branch)}).encode()
                self.wfile.write(found if hub.body is None else hub.body)

            def do_HEAD(self) -> None:
                self.send_response(hub.status)
                for header, value in hub.headers.items():
                    self.send_header(header, value)
                self.end_headers()

            def log_message(self, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def hub_on_loopback() -> Iterator[Hub]:
    """It serves until the block ends."""
    hub = Hub()
    threading.Thread(target=hub.server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield hub
    finally:
        hub.server.shutdown()
        hub.server.server_close()
