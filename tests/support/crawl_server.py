"""A server of a crawl on loopback, as data.commoncrawl.org is: files with Range and ETag. Faults are scripted:

    server.fault("crawl-data/a.warc.gz", "cut", "busy")     the next two answers for this file
    server.most_connections = 4                             403 for a request above it

Tests read what was sent: `server.requests`, `server.sent_bytes`, `server.most_at_once`.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

BLOCK_BYTES = 4096


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error here."""


class CrawlServer:
    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[tuple[str, str, str]] = []
        """Method, path, range."""
        self.encodings: set[str | None] = set()
        """Accept-Encoding of the requests."""
        self.agents: set[str | None] = set()
        """User-Agent of the requests."""
        self.sent_bytes: Counter[str] = Counter()
        self.conditions: list[str] = []
        """`If-Match` of the requests that have it."""
        self.ignores_conditions = self.has_no_marks = self.refuses_head = False
        self.without_length: set[str] = set()
        """Paths of files that are sent in chunks, without a size."""
        self.retry_after = "1"
        """Of the fault "limited", a 429."""
        self.times_s: list[float] = []
        """When each request came."""
        self.most_connections: int | None = None
        self.most_at_once = 0
        self.pause: threading.Event | None = None
        """Bytes after the first half of an answer wait for it."""
        self.half_sent = threading.Event()
        self._now = 0
        self._faults: dict[str, deque[str]] = defaultdict(deque)
        self._lock = threading.Lock()
        self.server = Server(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def fault(self, path: str, *faults: str) -> None:
        """Script the next answers for a file."""
        self._faults[path].extend(faults)

    def next_fault(self, path: str) -> str:
        with self._lock:
            return self._faults[path].popleft() if self._faults[path] else ""

    def entered(self, by: int) -> int:
        with self._lock:
            self._now += by
            self.most_at_once = max(self.most_at_once, self._now)
            return self._now


def _handler(crawl: CrawlServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            at_once = crawl.entered(1)
            try:
                if crawl.most_connections is not None and at_once > crawl.most_connections:
                    self.refuse(403)
                else:
                    self.file(unquote(self.path).removeprefix("/"))
            except OSError:
                self.close_connection = True
            finally:
                crawl.entered(-1)

        def file(self, path: str) -> None:
            crawl.requests.append((self.command, path, self.headers.get("Range", "")))
            crawl.times_s.append(time.time())
            crawl.encodings.add(self.headers.get("Accept-Encoding"))
            crawl.agents.add(self.headers.get("User-Agent"))
            if path not in crawl.files:
                self.refuse(404)
                return
            fault, content = crawl.next_fault(path), crawl.files[path]
            if fault in ("forbidden", "busy"):
                self.refuse(403 if fault == "forbidden" else 503)
                return
            if fault == "limited" or (crawl.refuses_head and self.command == "HEAD"):
                self.refuse(429 if fault else 405, {"Retry-After": crawl.retry_after} if fault else {})
                return
            if fault == "hang_up":
                self.close_connection = True
                return
            headers = {"ETag": f'"{hashlib.md5(content).hexdigest()}"'}
            if crawl.has_no_marks:
                headers = {}
            if_match = self.headers.get("If-Match")
            if if_match is not None:
                crawl.conditions.append(if_match)
                if if_match != headers.get("ETag") and not crawl.ignores_conditions:
                    self.refuse(412, headers)
                    return
            if fault == "other_etag":
                headers["ETag"] = '"other"'
            if fault == "encoded":
                content = gzip.compress(content)
                headers["Content-Encoding"] = "gzip"
            if fault == "flip":
                content = bytes([content[0] ^ 1]) + content[1:]
            match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if match and fault != "ignore_range":
                start, last = int(match[1]), min(int(match[2]), len(content) - 1)
                size = len(content) + (fault == "other_size")
                headers["Content-Range"] = f"bytes {start + (fault == 'wrong_range')}-{last}/{size}"
                self.send_response(206)
            else:
                start, last = 0, len(content) - 1
                self.send_response(200)
            body = content[start : last + 1]
            chunked = path in crawl.without_length
            length = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(len(body))}
            for name, value in {**headers, **length}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.send(path, body, fault, chunked=chunked)

        def send(self, path: str, body: bytes, fault: str, *, chunked: bool) -> None:
            for start in range(0, len(body), BLOCK_BYTES):
                if start * 2 >= len(body) and start:
                    crawl.half_sent.set()
                    if fault == "cut":
                        self.close_connection = True
                        self.connection.shutdown(2)
                        return
                    if crawl.pause is not None:
                        crawl.pause.wait(60)
                block = body[start : start + BLOCK_BYTES]
                self.wfile.write(b"%x\r\n%b\r\n" % (len(block), block) if chunked else block)
                crawl.sent_bytes[path] += len(block)
            if chunked:
                self.wfile.write(b"0\r\n\r\n")

        def refuse(self, status: int, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None: ...

    return Handler


@contextmanager
def crawl_server() -> Iterator[CrawlServer]:
    """It serves until the block ends."""
    crawl = CrawlServer()
    thread = threading.Thread(target=crawl.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield crawl
    finally:
        if crawl.pause is not None:
            crawl.pause.set()
        crawl.server.shutdown()
        crawl.server.server_close()
