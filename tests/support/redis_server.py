"""Debian's redis-server on loopback, with its data in a folder."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from running import wait_until

from marin_resources.ray_tpu.cluster.local.head import free_ports

REDIS = shutil.which("redis-server")


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """Its address meanwhile. What it holds is written to the folder at once."""
    assert REDIS is not None
    [port] = free_ports(1)
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    kept = ["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]
    with (folder / "redis.log").open("wb") as log:
        server = subprocess.Popen([REDIS, *options, *kept], stdout=log, stderr=log)
    try:
        wait_until(lambda: _answers(port), "Redis to answer")
        yield f"127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False
