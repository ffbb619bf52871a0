"""The part of the Hugging Face hub's API that takes a model, on loopback: large files come by LFS."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def git_oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class ModelHub:
    """Repositories by name: files by path. `token` is the one that may write."""

    def __init__(self) -> None:
        self.token = "hf_writes"
        self.files: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.objects: dict[str, bytes] = {}
        self.commits: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.headers["Authorization"] != f"Bearer {hub.token}":
                    self.answer(401, {"error": "Invalid username or password."})
                    return
                path = self.path.partition("?")[0]
                if path == "/api/repos/create":
                    given = json.loads(body)
                    name = f"{given['organization']}/{given['name']}" if given.get("organization") else given["name"]
                    known = name in hub.files
                    hub.files.setdefault(name, {})
                    hub.private.setdefault(name, given.get("private", False))
                    self.answer(409 if known else 200, {"url": f"{hub.url}/{name}"})
                elif path == "/api/validate-yaml":
                    self.answer(200, {"errors": [], "warnings": []})
                elif path.endswith("/preupload/main"):
                    name = path.removeprefix("/api/models/").removesuffix("/preupload/main")
                    self.answer(200, {"files": [hub.mode_of(name, one) for one in json.loads(body)["files"]]})
                elif path.endswith(".git/info/lfs/objects/batch"):
                    wanted = [one for one in json.loads(body)["objects"]]
                    self.answer(200, {"transfer": "basic", "objects": [hub.upload_of(one) for one in wanted]})
                elif path.endswith("/commit/main"):
                    name = path.removeprefix("/api/models/").removesuffix("/commit/main")
                    self.answer(200, hub.commit(name, [json.loads(line) for line in body.splitlines()]))
                else:
                    self.answer(404, {"error": path})

            def do_PUT(self) -> None:
                hub.objects[self.path.removeprefix("/lfs/")] = self.rfile.read(int(self.headers["Content-Length"]))
                self.answer(200, {})

            def do_GET(self) -> None:
                self.answer(200, {"id": "x", "sha": hub.commits[-1] if hub.commits else "0" * 40, "siblings": []})

            def answer(self, status: int, value: Any) -> None:
                content = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.git-lfs+json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def mode_of(self, name: str, file: dict[str, Any]) -> dict[str, Any]:
        path, stored = file["path"], self.files[name].get(file["path"])
        is_large = path.endswith(".safetensors")
        oid = None if stored is None else hashlib.sha256(stored).hexdigest() if is_large else git_oid(stored)
        return {"path": path, "uploadMode": "lfs" if is_large else "regular", "shouldIgnore": False, "oid": oid}

    def upload_of(self, wanted: dict[str, Any]) -> dict[str, Any]:
        known = wanted["oid"] in self.objects
        actions = {} if known else {"actions": {"upload": {"href": f"{self.url}/lfs/{wanted['oid']}", "header": {}}}}
        return {"oid": wanted["oid"], "size": wanted["size"], **actions}

    def commit(self, name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
        for row in rows:
            value = row["value"]
            if row["key"] == "file":
                self.files[name][value["path"]] = base64.b64decode(value["content"])
            elif row["key"] == "lfsFile":
                self.files[name][value["path"]] = self.objects[value["oid"]]
        self.commits.append(hashlib.sha1(json.dumps(rows).encode()).hexdigest())
        return {"commitUrl": f"{self.url}/{name}/commit/{self.commits[-1]}", "commitOid": self.commits[-1]}


@contextmanager
def model_hub() -> Iterator[ModelHub]:
    """It serves until the block ends."""
    hub = ModelHub()
    threading.Thread(target=hub.server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield hub
    finally:
        hub.server.shutdown()
        hub.server.server_close()
