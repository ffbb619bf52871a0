"""Packages that a step needs beyond its environment, in a folder that this process imports from as well.

The environment comes first: nothing in it is replaced, and what it has is not installed a second time. So what is
missing is found out in the environment itself (a dry run, with every installed version as a constraint), and that
alone is put into the folder.

The folder is made once for the same requirements in the same environment, in a cache on this machine:
MARIN_PACKAGES_DIR, else ~/.cache/marin/packages.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

TIMEOUT_S = 600.0
LOCK_POLL_S = 0.1
UV_SETTINGS = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}


class PackagesError(RuntimeError):
    """Packages that cannot be had: one sentence with what was asked for."""


def provide_packages(requirements: Sequence[str]) -> None:
    """Let this process import what the requirements name. Raises PackagesError."""
    folder = ensure(requirements)
    if folder is not None and folder not in sys.path:
        sys.path.append(folder)
        importlib.invalidate_caches()


def ensure(requirements: Sequence[str], *, timeout_s: float = TIMEOUT_S) -> str | None:
    """The folder to import from as well, None if nothing is asked for. Raises PackagesError."""
    if not requirements:
        return None
    asked, installed = sorted(set(requirements)), _installed()
    cache = Path(os.environ.get("MARIN_PACKAGES_DIR") or Path.home() / ".cache" / "marin" / "packages")
    folder = cache / _digest(asked, installed)
    if not folder.exists():
        end_s = time.monotonic() + timeout_s
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with _locked(folder.with_suffix(".lock"), end_s):
                if not folder.exists():  # another process may have made it meanwhile
                    _build(folder, asked, installed, end_s)
        except (TimeoutError, subprocess.TimeoutExpired):
            raise PackagesError(
                f"The packages {_named(asked)} were not installed within {timeout_s:g} s. "
                "Look whether the package index can be reached from this machine, or put them into its image."
            ) from None
        except OSError as error:
            raise PackagesError(
                f"The packages {_named(asked)} cannot be put into {str(cache)!r} ({error.strerror}). "
                "Set MARIN_PACKAGES_DIR to a folder with room that this user may write."
            ) from None
    return str(folder)


def _build(folder: Path, asked: list[str], installed: list[str], end_s: float) -> None:
    """Make the folder beside its place, then put it there."""
    for forgotten in folder.parent.glob(f"{folder.name}.*.tmp"):  # by a process that was killed
        shutil.rmtree(forgotten)
    beside = folder.with_suffix(f".{uuid.uuid4().hex[:8]}.tmp")
    beside.mkdir()
    try:
        missing = _missing(asked, installed, end_s)
        if missing:
            options = ["--no-deps", "--target", str(beside)]
            _uv(asked, [*options, "--requirements", "-"], "\n".join(missing), end_s)
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _missing(asked: list[str], installed: list[str], end_s: float) -> list[str]:
    """What the environment lacks of the requirements, each with its version or URL.

    uv tells it in lines as " + lxml==6.0.0" and " + lxml @ https://…". The flag for an environment that its
    distribution manages is harmless, as nothing is changed.
    """
    with tempfile.NamedTemporaryFile("w", prefix="installed-", suffix=".txt") as constraints:
        constraints.write("\n".join(installed))
        constraints.flush()
        options = ["--dry-run", "--break-system-packages", "--constraints", constraints.name]
        told = _uv(asked, [*options, "--requirements", "-"], "\n".join(asked), end_s)
    return [line.removeprefix(" + ").strip() for line in told.splitlines() if line.startswith(" + ")]


def _uv(asked: list[str], options: list[str], requirements: str, end_s: float) -> str:
    """What `uv pip install` prints on stderr. Raises PackagesError with its own reason."""
    done = subprocess.run(
        [_find_uv(), "pip", "install", "--python", sys.executable, *options],
        input=requirements,
        capture_output=True,
        text=True,
        timeout=max(0.01, end_s - time.monotonic()),
        env={**os.environ, **UV_SETTINGS},
        check=False,
    )
    if done.returncode != 0:
        raise PackagesError(
            f"The packages {_named(asked)} cannot be installed: {_reason(done.stderr)} "
            "Mend the step's packages, or put them into its environment."
        )
    return done.stderr


def _find_uv() -> str:
    """uv as a package of this environment, else on PATH."""
    with contextlib.suppress(ImportError, FileNotFoundError):
        import uv

        return uv.find_uv_bin()
    found = shutil.which("uv")
    if found is None:
        raise PackagesError(
            "Packages beyond a step's extras are installed with uv, which is not on this machine. Install uv in the "
            "environment or the image, or put the packages there."
        )
    return found


def _reason(told: str) -> str:
    """uv's error in one line, without what it says before and the hints behind."""
    start = max(told.find("error:"), told.find("×"), 0)
    text = told[start:].partition("\nhint:")[0].removeprefix("error:").replace("\n  cause:", ":")
    return " ".join(text.translate(_FRAMES).split()).rstrip(".") + "."


def _installed() -> list[str]:
    """Each distribution of this environment with its version, as constraints.

    From the names of their folders: to read what is in hundreds of them would take longer than all else here.
    """
    found: set[tuple[str, str]] = set()
    for folder in filter(os.path.isdir, sys.path):
        for name in os.listdir(folder):
            if name.endswith(".dist-info"):
                project, _, version = name.removesuffix(".dist-info").rpartition("-")
                found.add((project, version))
    return sorted(f"{name}=={version}" for name, version in found if name and version)


def _digest(asked: list[str], installed: list[str]) -> str:
    where = [sys.implementation.cache_tag, sysconfig.get_platform()]
    return hashlib.sha256("\n".join([*asked, "", *where, "", *installed]).encode()).hexdigest()[:32]


@contextlib.contextmanager
def _locked(path: Path, end_s: float) -> Iterator[None]:
    """One process at a time; the kernel frees a dead one's lock. Raises TimeoutError if another has it for long."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end_s:
                    raise TimeoutError from None
                time.sleep(LOCK_POLL_S)
        yield
    finally:
        os.close(fd)


def _named(requirements: Sequence[str]) -> str:
    return ", ".join(repr(requirement) for requirement in requirements)


_FRAMES = str.maketrans(dict.fromkeys("×╰─▶│├", " "))
"""Which uv draws around its reasons."""
