"""Buckets for tests: a GCS and an S3 on loopback, in processes of their own, started by the first test that asks.

Their ports are bound and their addresses put into the environment when this is imported, so that every process that a
test starts, and a Ray that other tests share, talks to them and to nothing else.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
import uuid
from functools import cache
from pathlib import Path


_HERE = Path(__file__).parent


def _listening() -> socket.socket:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.listen(128)
    return bound


_GCS, _S3 = _listening(), _listening()
GCS_URL, S3_URL = (f"http://127.0.0.1:{s.getsockname()[1]}" for s in (_GCS, _S3))

os.environ.update(
    STORAGE_EMULATOR_HOST=GCS_URL,
    FSSPEC_GS_TOKEN="anon",
    GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT="false",  # with it gcsfs asks a gRPC service that no HTTP server has
    TENSORSTORE_GCS_HTTP_URL=GCS_URL,
    GOOGLE_AUTH_TOKEN_FOR_TESTING="abc",
    AWS_ENDPOINT_URL=S3_URL,
    AWS_ACCESS_KEY_ID="test",
    AWS_SECRET_ACCESS_KEY="test",
    AWS_DEFAULT_REGION="us-east-1",
)


def gcs_prefix() -> str:
    """A fresh bucket."""
    _gcs_server()
    name = f"test-{uuid.uuid4().hex[:12]}"
    _post(f"{GCS_URL}/storage/v1/b?project=test", f'{{"name": "{name}"}}')
    return f"gs://{name}/prefix"


def s3_prefix() -> str:
    """A fresh bucket."""
    _s3_server()
    name = f"test-{uuid.uuid4().hex[:12]}"
    import s3fs

    s3fs.S3FileSystem(use_listings_cache=False).mkdir(name)
    return f"s3://{name}/prefix"


@cache
def _gcs_server() -> subprocess.Popen[bytes]:
    return _start([sys.executable, "-m", "fake_gcs", str(_GCS.fileno())], _GCS)


@cache
def _s3_server() -> subprocess.Popen[bytes]:
    code = (
        "import socket, sys, threading; from werkzeug.serving import make_server; "
        "from moto.server import DomainDispatcherApplication, create_backend_app; "
        "app = DomainDispatcherApplication(create_backend_app); "
        "make_server('127.0.0.1', 0, app, threaded=True, fd=int(sys.argv[1])).serve_forever()"
    )
    return _start([sys.executable, "-c", code, str(_S3.fileno())], _S3, S3_URL)


def _start(command: list[str], bound: socket.socket, ready_url: str = "") -> subprocess.Popen[bytes]:
    server = subprocess.Popen(
        command, pass_fds=[bound.fileno()], cwd=_HERE, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    return server


def _post(url: str, body: str) -> None:
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"}, method="POST")
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()


def stop_all() -> None:
    for start in (_gcs_server, _s3_server):
        if start.cache_info().currsize:
            server = start()
            server.kill()
            server.wait()
