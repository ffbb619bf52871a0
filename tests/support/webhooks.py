"""A webhook on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = "s3cr3t-t0ken-of-the-hook"


class Webhook:
    """Takes messages, and answers with `status`."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.status = 200
        self.moved_to = ""
        """Where a redirect points, if the status is that of one; a path is where it is from then on."""
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "{}")
                if hook.status == 200 and "text" in body:
                    hook.texts.append(body["text"])
                self.send_response(hook.status)
                if hook.moved_to:
                    self.send_header("Location", hook.moved_to)
                    if hook.moved_to.startswith("/"):
                        hook.status, hook.moved_to = 200, ""
                self.end_headers()

            do_HEAD = do_POST

            def log_message(self, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/services/{SECRET}"


@contextmanager
def webhook_on_loopback() -> Iterator[Webhook]:
    """It serves until the block ends."""
    hook = Webhook()
    threading.Thread(target=hook.server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield hook
    finally:
        hook.server.shutdown()
        hook.server.server_close()
