"""Google's metadata server, as far as the notice of a preemption goes."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qs, urlsplit


class MetadataServer:
    """Answers `instance/preempted`. `preempt` preempts the machines whose questions wait for an answer."""

    def __init__(self) -> None:
        self._preempted = threading.Event()
        preempted, over = self._preempted, threading.Event()
        self._over = over

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                if self.headers.get("Metadata-Flavor") != "Google":
                    self.send_error(403)
                elif url.path != "/computeMetadata/v1/instance/preempted":
                    self.send_error(404)
                else:
                    query = parse_qs(url.query)
                    change = over if preempted.is_set() else preempted
                    if query.get("wait_for_change") == ["true"]:
                        change.wait(float(query.get("timeout_sec", ["3600"])[0]))
                    body = b"TRUE" if change is preempted and preempted.is_set() else b"FALSE"
                    self.send_response(200)
                    self.send_header("Metadata-Flavor", "Google")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_address[1]}"

    def preempt(self) -> None:
        self._preempted.set()

    def __enter__(self) -> MetadataServer:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._preempted.set()
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
