"""The Hugging Face hub for downloads, on loopback: revisions, listings by page, and files behind signed addresses.

Two servers on two ports, as the hub and its storage are two hosts. Names in `large` patterns are stored at the second
one: `/resolve/` redirects there with an address that is signed and expires. Faults are scripted:

    hub.fault("data/a.bin", "cut", "flip")     the next two answers with bytes of the file
    hub.fault("tree", "server_error")          the next page of a listing; "revision": the next answer for a revision

Tests read what was sent: `hub.requests`, `hub.sent_bytes`, `hub.tokens`.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

BLOCK_BYTES = 4096


def git_oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def is_large(path: str) -> bool:
    return path.endswith((".bin", ".parquet", ".gz"))


def entry(path: str, content: bytes) -> dict[str, Any]:
    """The row of a file in a listing."""
    row: dict[str, Any] = {"type": "file", "oid": git_oid(content), "size": len(content), "path": path}
    if is_large(path):
        sha256 = hashlib.sha256(content).hexdigest()
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {len(content)}\n".encode()
        row["lfs"] = {"oid": sha256, "size": len(content), "pointerSize": len(pointer)}
        row["oid"] = git_oid(pointer)
    return row


@dataclass
class Repo:
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    rows: list[Any] = field(default_factory=list)
    """Further rows of the listing of every commit."""
    is_gated: bool = False
    is_private: bool = False


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error here."""


class DatasetHub:
    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.moved: dict[str, str] = {}
        """Old name -> new name."""
        self.token = "hf_reads"
        self.elsewhere = ""
        """Another hub, to which this one redirects everything."""
        self.redirects: str | None = None
        """Location of every answer."""
        self.next_pages_at = ""
        """Another host for the next pages of listings."""
        self.page_rows = 1000
        self.limit: int | None = None
        """Requests of the hub until it answers 429; None: no limit."""
        self.window_s = 0
        self.requests: list[tuple[str, str, str]] = []
        """Server ("hub" or "storage"), path, range."""
        self.tokens: dict[str, set[str | None]] = {"hub": set(), "storage": set()}
        self.agents: set[str | None] = set()
        """User-Agent of all requests, to both servers."""
        self.sent_bytes: Counter[str] = Counter()
        """Bytes of content by path."""
        self.gate: threading.Event | None = None
        """Bytes after the first half of a range wait for it."""
        self.dropped: list[threading.Event] = []
        """Gates behind which nothing more is sent: their client is gone."""
        self.half_sent = threading.Event()
        self.closing = threading.Event()
        self.most_at_once = 0
        self._now = 0
        self._faults: dict[str, deque[str]] = defaultdict(deque)
        self._signatures: set[str] = set()
        self._lock = threading.Lock()
        self._hub = Server(("127.0.0.1", 0), _handler(self, "hub"))
        self._storage = Server(("127.0.0.1", 0), _handler(self, "storage"))
        self.url = f"http://127.0.0.1:{self._hub.server_port}"
        self.storage_url = f"http://127.0.0.1:{self._storage.server_port}"
        self.servers = (self._hub, self._storage)

    def add(self, name: str, files: dict[str, bytes], *, branch: str = "main", kind: str = "datasets") -> str:
        """Add a commit, the newest of its branch. Returns its 40 digits."""
        repo = self.repos.setdefault(f"{kind}/{name}", Repo())
        text = repr((branch, sorted((path, git_oid(content)) for path, content in files.items())))
        commit = hashlib.sha1(text.encode()).hexdigest()
        repo.commits[commit] = files
        repo.branches[branch] = commit
        return commit

    def fault(self, place: str, *faults: str) -> None:
        """Script the next answers for a file, "tree" or "revision"."""
        self._faults[place].extend(faults)

    def next_fault(self, place: str, *, peek: bool = False) -> str:
        with self._lock:
            waiting = self._faults[place]
            if not waiting:
                return ""
            return waiting[0] if peek else waiting.popleft()

    def count(self, server: str, part: str = "") -> int:
        return sum(where == server and part in path for where, path, _ in self.requests)

    def sign(self) -> str:
        with self._lock:
            signature = hashlib.sha256(b"%d" % len(self._signatures)).hexdigest()[:16]
            self._signatures.add(signature)
            return signature

    def expire(self) -> None:
        """Make all signed addresses of now invalid."""
        with self._lock:
            self._signatures = {f"gone{i}" for i in range(len(self._signatures))}

    def is_signed(self, signature: str) -> bool:
        return signature in self._signatures

    def entered(self, by: int) -> None:
        with self._lock:
            self._now += by
            self.most_at_once = max(self.most_at_once, self._now)

    def commit_of(self, repo: Repo, revision: str) -> str | None:
        if re.fullmatch(r"[0-9a-f]{7,40}", revision):
            return next((commit for commit in repo.commits if commit.startswith(revision)), None)
        return repo.branches.get(revision)


def _handler(hub: DatasetHub, server: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            hub.requests.append((server, unquote(self.path), self.headers.get("Range", "")))
            hub.tokens[server].add(self.headers.get("Authorization"))
            hub.agents.add(self.headers.get("User-Agent"))
            parts = urlsplit(self.path)
            if server == "storage":
                self.stored(parts.path, parse_qs(parts.query))
                return
            if hub.redirects is not None:
                self.answer(302, None, {"Location": hub.redirects})
                return
            if hub.elsewhere:
                self.answer(307, None, {"Location": f"{hub.elsewhere}{self.path}"})
                return
            if hub.limit is not None:
                hub.limit -= 1
                if hub.limit < 0:
                    hub.limit = None
                    self.answer(429, {"error": "rate"}, {"RateLimit": f'"resolvers";r=0;t={hub.window_s}'})
                    return
            self.api(parts.path.removeprefix("/api/"), parse_qs(parts.query)) if parts.path.startswith(
                "/api/"
            ) else self.resolve(parts.path)

        def repo_of(self, kind: str, name: str, rest: str) -> Repo | None:
            """The repository; None after an answer that is an error or a redirect."""
            if name in hub.moved:
                at = self.path.replace(f"/{name}/", f"/{hub.moved[name]}/", 1)
                self.answer(307, None, {"Location": at})
                return None
            repo = hub.repos.get(f"{kind}/{name}")
            given = self.headers.get("Authorization")
            is_known = given == f"Bearer {hub.token}"
            if repo is None or (repo.is_private and not is_known):
                self.refuse(404 if given else 401, "RepoNotFound")
                return None
            if repo.is_gated and "/resolve/" in rest and not is_known:
                self.refuse(403 if given else 401, "GatedRepo")
                return None
            return repo

        def api(self, path: str, query: dict[str, list[str]]) -> None:
            match = re.fullmatch(r"(\w+)/(.+?)/(revision|tree)/([^/]+)(?:/(.*))?", path)
            assert match is not None, path
            kind, name, verb, revision, folder = match.groups()
            if verb == "tree" and self.api_fault(hub.next_fault("tree")):
                return
            if verb == "revision" and self.api_fault(hub.next_fault("revision")):
                return
            repo = self.repo_of(kind, name, "")
            if repo is None:
                return
            commit = hub.commit_of(repo, unquote(revision))
            if commit is None:
                self.refuse(404, "RevisionNotFound")
            elif verb == "revision":
                self.answer(200, {"id": name, "sha": commit, "private": repo.is_private, "gated": repo.is_gated})
            else:
                self.page(repo, commit, unquote(folder or ""), query)

        def api_fault(self, fault: str) -> bool:
            if fault == "server_error":
                self.answer(503, {"error": "try again"})
            elif fault == "limited":
                self.answer(429, {"error": "rate"}, {"Retry-After": "0"})
            elif fault == "no_json":
                self.answer(200, "<html>", raw=True)
            elif fault == "hang_up":
                self.close_connection = True
            return bool(fault)

        def page(self, repo: Repo, commit: str, folder: str, query: dict[str, list[str]]) -> None:
            before = f"{folder}/" if folder else ""
            files = {path: content for path, content in repo.commits[commit].items() if path.startswith(before)}
            if folder and not files:
                self.refuse(404, "EntryNotFound")
                return
            names = [path[len(before) :] for path in files]
            folders = {name[:at] for name in names for at, letter in enumerate(name) if letter == "/"}
            if query["recursive"][0].lower() == "true":
                rows = [entry(path, content) for path, content in sorted(files.items())] + repo.rows
            else:
                rows = [entry(p, content) for p, content in sorted(files.items()) if "/" not in p[len(before) :]]
                folders = {name for name in folders if "/" not in name}
            rows += [
                {"type": "directory", "oid": "0" * 40, "size": 0, "path": before + name} for name in sorted(folders)
            ]
            start = int(query.get("cursor", ["0"])[0])
            headers = {}
            if start + hub.page_rows < len(rows):
                address = f"{hub.next_pages_at or hub.url}{self.path.partition('&cursor=')[0]}"
                headers["Link"] = f'<{address}&cursor={start + hub.page_rows}>; rel="next"'
            self.answer(200, rows[start : start + hub.page_rows], headers)

        def resolve(self, path: str) -> None:
            match = re.fullmatch(r"/(datasets/)?([^/]+(?:/[^/]+)?)/resolve/([^/]+)/(.+)", path)
            assert match is not None, path
            kind, name = "datasets" if match[1] else "models", match[2]
            repo = self.repo_of(kind, name, path)
            if repo is None:
                return
            commit, file = hub.commit_of(repo, unquote(match[3])), unquote(match[4])
            if commit is None or file not in repo.commits[commit]:
                self.refuse(404, "EntryNotFound")
                return
            content, row = repo.commits[commit][file], entry(file, repo.commits[commit][file])
            fault = hub.next_fault(file, peek=True)
            headers = {"X-Repo-Commit": commit, "ETag": f'"{row["oid"]}"'}
            if fault in ("other_commit", "other_etag", "other_size"):
                hub.next_fault(file)
                headers["X-Repo-Commit"] = "f" * 40 if fault == "other_commit" else commit
                headers["ETag"] = f'"{"e" * 40}"' if fault == "other_etag" else headers["ETag"]
            size = len(content) + (fault == "other_size")
            if not is_large(file):
                self.body(file, content, headers)
                return
            sha256 = "e" * 64 if fault == "other_etag" else row["lfs"]["oid"]
            signed = f"{hub.storage_url}/{kind}/{quote(name)}/{commit}/{quote(file)}?X-Signature={hub.sign()}"
            linked = {"X-Linked-Etag": f'"{sha256}"', "X-Linked-Size": str(size), "Location": signed}
            self.answer(302, None, {**headers, **linked})

        def stored(self, path: str, query: dict[str, list[str]]) -> None:
            if not hub.is_signed(query.get("X-Signature", [""])[0]):
                self.answer(403, "<Error><Code>AccessDenied</Code></Error>", raw=True)
                return
            kind, owner, name, commit, file = path.removeprefix("/").split("/", 4)
            file = unquote(file)
            self.body(file, hub.repos[f"{kind}/{unquote(owner)}/{unquote(name)}"].commits[commit][file], {})

        def body(self, file: str, content: bytes, headers: dict[str, str]) -> None:
            fault = hub.next_fault(file)
            if fault == "expire":
                self.answer(403, "<Error><Code>AccessDenied</Code></Error>", raw=True)
                return
            if fault == "server_error":
                self.answer(503, {"error": "try again"})
                return
            if fault == "limited":
                self.answer(429, {"error": "rate"}, {"RateLimit": '"resolvers";r=0;t=0'})
                return
            if fault == "hang_up":
                self.close_connection = True
                return
            match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            start, last = (int(match[1]), int(match[2])) if match else (0, len(content) - 1)
            size = len(content) + (1 if fault == "lie" else 0)
            if fault == "ignore_range" or not match:
                self.send_response(200)
                start, last = 0, len(content) - 1
            else:
                self.send_response(206)
                stated = start + 1 if fault == "wrong_range" else start
                self.send_header("Content-Range", f"bytes {stated}-{last}/{size}")
            sent = bytearray(content[start : last + 1])
            if fault == "flip":
                sent[len(sent) // 2] ^= 1
            for name, value in {"Content-Length": str(len(sent)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.send(file, bytes(sent), fault)

        def send(self, file: str, sent: bytes, fault: str) -> None:
            if self.command == "HEAD":
                return
            hub.entered(1)
            try:
                for start in range(0, len(sent), BLOCK_BYTES):
                    if start * 2 >= len(sent) and start:
                        hub.half_sent.set()
                        if fault == "cut":
                            self.close_connection = True
                            self.connection.shutdown(2)
                            return
                        if fault == "silent":
                            hub.closing.wait(20)
                        if fault == "trickle":
                            self.trickle(file, sent[start:])
                            return
                        if (gate := hub.gate) is not None:
                            gate.wait(60)
                            if gate in hub.dropped:
                                self.close_connection = True
                                return
                    block = sent[start : start + BLOCK_BYTES]
                    self.wfile.write(block)
                    hub.sent_bytes[file] += len(block)
            except OSError:
                self.close_connection = True
            finally:
                hub.entered(-1)

        def trickle(self, file: str, sent: bytes) -> None:
            for at in range(len(sent)):
                if hub.closing.wait(0.02):
                    return
                self.wfile.write(sent[at : at + 1])
                hub.sent_bytes[file] += 1

        def refuse(self, status: int, code: str) -> None:
            self.answer(status, {"error": code}, {"X-Error-Code": code, "X-Error-Message": "No."})

        def answer(self, status: int, value: Any, headers: dict[str, str] | None = None, *, raw: bool = False) -> None:
            content = b"" if value is None else (value if raw else json.dumps(value)).encode()
            self.send_response(status)
            for name, text in {**(headers or {}), "Content-Length": str(len(content))}.items():
                self.send_header(name, text)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, *args: object) -> None: ...

    return Handler


@contextmanager
def dataset_hub() -> Iterator[DatasetHub]:
    """It serves until the block ends."""
    hub = DatasetHub()
    threads = [threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True) for server in hub.servers]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        hub.closing.set()
        if hub.gate is not None:
            hub.gate.set()
        for server in hub.servers:
            server.shutdown()
            server.server_close()
