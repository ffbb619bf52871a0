"""Two users of one machine, without accounts: processes of root that take another user's number.

A user needs a Python whose folders others may enter. If the interpreter is in a private one, such as /root, the process
gets a view of the file system of its own, in which that folder has nothing but the interpreter.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from running import ROOT

LAB = 12000
"""The number of a group that two people have in common."""
TIMEOUT_S = 400
SITE_PACKAGES = next(path for path in sys.path if path.endswith("site-packages"))
VIEW = """
set -e
before=$(umask)
umask 022
mkdir -p "$SPARE"
mount --bind "$KEPT" "$SPARE"
mount -t tmpfs -o mode=755 none "$PRIVATE"
mkdir -p "$KEPT"
mount --bind "$SPARE" "$KEPT"
umask "$before"
exec "$@"
"""
"""`PRIVATE` with nothing but `KEPT` in it, for this process and its children."""


def why_not() -> str:
    """Why no process of another user can be started here; "" if one can."""
    if os.geteuid() != 0:
        return "only root can start processes of other users"
    if shutil.which("setpriv") is None or shutil.which("unshare") is None:
        return "setpriv and unshare are missing"
    tried = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "this root has no right to mount"


@dataclass(frozen=True)
class Done:
    code: int
    text: str
    """stdout and stderr."""


@dataclass(frozen=True, kw_only=True)
class Person:
    """A user with a home of their own."""

    uid: int
    home: Path
    prefix: Path
    umask: int = 0o022
    groups: tuple[int, ...] = ()

    def run(self, *words: str, **variables: str) -> Done:
        """Run Python with these arguments to its end."""
        process = self.start(*words, **variables)
        try:
            text, _ = process.communicate(timeout=TIMEOUT_S)
        finally:
            self.kill(process)
        return Done(process.returncode, text)

    def marin(self, *words: str) -> Done:
        return self.run("-m", "marin_assets.cli", *words)

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        """Start Python with these arguments, in a process group of its own."""
        groups = f"--groups={','.join(map(str, self.groups))}" if self.groups else "--clear-groups"
        become = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", groups]
        view, view_variables = _view()
        return subprocess.Popen(
            [*view, *become, sys.executable, *words],
            env={**self._env(), **view_variables, **variables},
            cwd=self.home,
            umask=self.umask,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def kill(self, process: subprocess.Popen[str]) -> None:
        """End a process and its group, as `kill -9` does."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def _env(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name.startswith(("RAY_", "JAX_", "HF_"))}
        return {
            **kept,
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.home / "tmp"),
            "DAGSTER_HOME": str(self.home / "dagster"),
            "MARIN_PREFIX": str(self.prefix),
            "MARIN_CONFIG": "",
            "PYTHONPATH": f"{ROOT}:{ROOT / 'tests/support'}",
        }


@contextmanager
def folder_for_all() -> Iterator[Path]:
    """A folder that every user may enter; pytest's own is private."""
    folder = Path(tempfile.mkdtemp(prefix="marin-people-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def person(folder: Path, name: str, uid: int, prefix: Path, *, umask: int = 0o022, in_lab: bool = False) -> Person:
    """A user whose home is a folder below this one."""
    home = folder / name
    (home / "tmp").mkdir(parents=True)
    for place in (home, home / "tmp"):
        os.chown(place, uid, uid)
    return Person(uid=uid, home=home, prefix=prefix, umask=umask, groups=(LAB,) if in_lab else ())


def _view() -> tuple[list[str], dict[str, str]]:
    """The command, and its variables, by which a process sees an interpreter that others may run."""
    kept = Path(sys.base_prefix)
    private = next((place for place in reversed(kept.parents) if not _may_be_entered(place)), None)
    if private is None:
        return [], {}
    spare = Path("/mnt")
    return ["unshare", "-m", "sh", "-c", VIEW, "sh"], {"KEPT": str(kept), "PRIVATE": str(private), "SPARE": str(spare)}


def _may_be_entered(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IXOTH)
