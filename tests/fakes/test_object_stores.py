"""The bucket servers: one of each for a test and its child processes; they end with the test process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import object_stores
import psutil
import pytest

from marin_resources.storage import files

pytestmark = pytest.mark.skipif(bool(object_stores.REAL_GCS_PREFIX), reason="a real bucket has no server here")

HERE = Path(object_stores.__file__).parent


def started(code: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=HERE,
        env=environment,
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )


def test_a_process_that_a_test_starts_talks_to_the_same_servers(gcs_prefix: str) -> None:
    files.write_bytes(f"{gcs_prefix}/a", b"from the test")
    code = (
        "import object_stores, fsspec; "
        f"print(object_stores.GCS_URL, fsspec.filesystem('gs').cat_file({gcs_prefix + '/a'!r}).decode(), end='')"
    )
    child = started(code, dict(os.environ))
    assert child.communicate(timeout=60)[0] == f"{object_stores.GCS_URL} from the test"


def test_servers_end_with_the_process_that_started_them() -> None:
    ours = {object_stores.ADDRESSES, object_stores.OWNER}
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    code = "import object_stores as o; o.gcs_prefix(); print(o._gcs_server().pid, flush=True); input()"
    child = started(code, environment)
    assert child.stdout is not None
    server = psutil.Process(int(child.stdout.readline()))
    child.kill()
    child.communicate()
    server.wait(timeout=60)


def test_a_server_that_does_not_start_is_reported_with_its_log() -> None:
    with socket.socket() as bound, pytest.raises(RuntimeError, match=r"ended with code 1. Look into '.*\.log'") as told:
        object_stores._start("no_such_server", bound)
    log = Path(str(told.value).split("'")[-2])
    assert "No module named no_such_server" in log.read_text()
    log.unlink()
