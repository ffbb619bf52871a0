"""The rehearsal's object storage keeps what it has acknowledged, also when its process is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from running import ROOT

from marin_resources.ray_tpu.cluster.local.head import free_ports


@contextmanager
def objects(file: Path, port: int) -> Iterator[None]:
    """Serving; killed at the end."""
    command = [sys.executable, "-m", "fake_gcs", "--port", str(port), "--file", str(file)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "deploy/local")}
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    try:
        yield
    finally:
        process.kill()
        process.communicate()


@pytest.mark.long
def test_objects_and_their_generations_outlive_a_kill(tmp_path: Path) -> None:
    [port] = free_ports(1)
    api, file = f"http://127.0.0.1:{port}", tmp_path / "objects"

    def ask(method: str, path: str, body: bytes | dict[str, Any] | None = None) -> Any:
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        request = urllib.request.Request(api + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            found = answer.read()
        return json.loads(found) if found.startswith(b"{") else found

    def put(name: str, data: bytes) -> dict[str, Any]:
        return ask("POST", f"/upload/storage/v1/b/kept/o?uploadType=media&name={name}", data)

    with objects(file, port):
        ask("POST", "/storage/v1/b?project=x", {"name": "kept"})
        ask("POST", "/storage/v1/b?project=x", {"name": "removed"})
        ask("DELETE", "/storage/v1/b/removed")
        put("a", b"1")
        replaced = put("a", b"2")
        put("gone", b"x")
        ask("DELETE", "/storage/v1/b/kept/o/gone")
        put("b", b"3")
        patched = ask("PATCH", "/storage/v1/b/kept/o/b", {"metadata": {"k": "v"}})
    with objects(file, port):
        listed = ask("GET", "/storage/v1/b/kept/o")["items"]
        assert listed == [replaced, patched]
        assert ask("GET", "/storage/v1/b/kept/o/a?alt=media") == b"2"
        assert int(put("a", b"4")["generation"]) > int(replaced["generation"])
        assert [bucket["name"] for bucket in ask("GET", "/storage/v1/b?project=x")["items"]] == ["kept"]
    with objects(file, port):
        assert ask("GET", "/storage/v1/b/kept/o/a?alt=media") == b"4"
