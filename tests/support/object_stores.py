"""Buckets for tests: a GCS and an S3 on loopback, in processes of their own, started by the first test that asks.

Their ports are bound and their addresses put into the environment when this is imported, so that every process that a
test starts, and a Ray that other tests share, talks to them and to nothing else. A process that finds the addresses in
its environment uses them: the servers are those of the process that began.

With TEST_GCS_PREFIX=gs://bucket/folder (and Google's own credentials) tests of GCS run there instead, as far as they
ask for nothing that a real bucket cannot do.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import uuid
from functools import cache
from pathlib import Path

from bucket_for_tests import BucketForTests

REAL_GCS_PREFIX = os.environ.get("TEST_GCS_PREFIX", "")
ADDRESSES = "TEST_OBJECT_STORES"
"""In the environment: where GCS and S3 are, in a process that one with servers has started."""
OWNER = "TEST_OBJECT_STORES_OWNER"
"""Likewise: whose they are, of the processes among which pytest-xdist shares the tests out. Each has its own."""
_HERE = Path(__file__).parent
_REHEARSAL = _HERE.parents[1] / "deploy/local"


def _bound() -> socket.socket:
    """It does not listen yet: until its server does, who connects is refused and does not wait."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound


_us = os.environ.get("PYTEST_XDIST_WORKER", "the only one")
_sockets = [] if os.environ.get(OWNER) == _us else [_bound(), _bound()]
if _sockets:
    os.environ[OWNER] = _us
    os.environ[ADDRESSES] = " ".join(f"http://127.0.0.1:{bound.getsockname()[1]}" for bound in _sockets)
GCS_URL, S3_URL = os.environ[ADDRESSES].split()
_logs: list[str] = []

if not REAL_GCS_PREFIX:
    os.environ.update(
        STORAGE_EMULATOR_HOST=GCS_URL,
        FSSPEC_GS_TOKEN="anon",
        TENSORSTORE_GCS_HTTP_URL=GCS_URL,
        GOOGLE_AUTH_TOKEN_FOR_TESTING="abc",
    )
os.environ.update(
    GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT="false",  # with it gcsfs asks a gRPC service that no HTTP server has
    AWS_ENDPOINT_URL=S3_URL,
    AWS_ACCESS_KEY_ID="test",
    AWS_SECRET_ACCESS_KEY="test",
    AWS_DEFAULT_REGION="us-east-1",
)


def gcs_prefix() -> str:
    """A prefix in a fresh bucket; with a real bucket, a fresh folder of it."""
    if REAL_GCS_PREFIX:
        return f"{REAL_GCS_PREFIX.rstrip('/')}/{uuid.uuid4().hex[:12]}"
    return gcs_bucket().prefix


def gcs_bucket(location: str = "US") -> BucketForTests:
    """A fresh bucket, with the means to let requests about it fail, and to see them."""
    _gcs_server()
    return BucketForTests.create(GCS_URL, f"test-{uuid.uuid4().hex[:12]}", location)


def gcs_bucket_of(path: str) -> BucketForTests:
    """The same for a bucket that is there: that of the URL `path`."""
    return BucketForTests(GCS_URL, path.removeprefix("gs://").partition("/")[0])


def s3_prefix(kind: str = "test") -> str:
    """A prefix in a fresh bucket; of the kind `moto_s3.CARELESS`, one that ignores conditions."""
    _s3_server()
    name = f"{kind}-{uuid.uuid4().hex[:12]}"
    import s3fs

    s3fs.S3FileSystem(use_listings_cache=False).mkdir(name)
    return f"s3://{name}/prefix"


def forget(prefix: str) -> None:
    """Let go of what lies in a bucket of GCS, which is held in memory."""
    if prefix.startswith("gs://") and not REAL_GCS_PREFIX:
        gcs_bucket_of(prefix).forget()


@cache
def _gcs_server() -> subprocess.Popen[bytes] | None:
    return _start("gcs_with_faults", _sockets[0]) if _sockets else None


@cache
def _s3_server() -> subprocess.Popen[bytes] | None:
    return _start("moto_s3", _sockets[1]) if _sockets else None


def _start(module: str, bound: socket.socket) -> subprocess.Popen[bytes]:
    """A server on `bound` that listens already. It ends with its standard input, so with this process at the latest."""
    with tempfile.NamedTemporaryFile(prefix=f"{module}-", suffix=".log", delete=False) as log:
        server = subprocess.Popen(
            [sys.executable, "-m", module, str(bound.fileno())],
            pass_fds=[bound.fileno()],
            cwd=_HERE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(_REHEARSAL), os.environ.get("PYTHONPATH", "")])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    assert server.stdout is not None
    if server.stdout.readline() != b"ready\n":
        code = server.wait()
        raise RuntimeError(f"The server {module!r} of the tests ended with code {code}. Look into {log.name!r}.")
    bound.close()  # the server's alone: when it ends, who connects is refused
    _logs.append(log.name)
    return server


def stop_all() -> None:
    """Stop the servers that this process has started."""
    for start in (_gcs_server, _s3_server):
        server = start() if start.cache_info().currsize else None
        if server is not None:
            server.kill()
            server.communicate()
    for log in _logs:
        Path(log).unlink(missing_ok=True)
