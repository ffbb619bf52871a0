"""Install packages that a step requires beyond its environment into a folder on this process's import path.

The environment has priority: none of its packages is replaced or installed a second time. A dry run in the environment,
with every installed version as a constraint, lists the missing packages, and only these go into the folder.

The folder is built once for the same requirements in the same environment, in a cache on this machine:
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

from marin_resources.ray_tpu.requirements import MissingByStep, MissingRequirement, Requirements
from marin_resources.types.errors import MarinError

TIMEOUT_S = 600.0
RESOLVE_TIMEOUT_S = 60.0
LOCK_POLL_S = 0.1
UV_SETTINGS = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}


class PackagesError(MarinError):
    """Packages that cannot be installed: one sentence with the requirements."""


def install_packages(requirements: Sequence[str]) -> None:
    """Install the requirements and put them on this process's import path. Raises PackagesError."""
    folder = ensure_installed(requirements)
    if folder is not None and folder not in sys.path:
        sys.path.append(folder)
        importlib.invalidate_caches()


def ensure_installed(requirements: Sequence[str], *, timeout_s: float = TIMEOUT_S) -> str | None:
    """Return the folder with the packages, None without requirements. Raises PackagesError."""
    if not requirements:
        return None
    unique, installed = sorted(set(requirements)), _installed()
    folder = _folder(unique, installed)
    cache = folder.parent
    if not folder.exists():
        end_s = time.monotonic() + timeout_s
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with _locked(folder.with_suffix(".lock"), end_s):
                if not folder.exists():  # another process may have built it meanwhile
                    _build(folder, unique, installed, end_s)
        except (TimeoutError, subprocess.TimeoutExpired):
            raise _too_slow("installed", unique, timeout_s) from None
        except OSError as error:
            raise PackagesError(
                f"The packages {_named(unique)} cannot be put into {str(cache)!r} ({error.strerror}). "
                "Set MARIN_PACKAGES_DIR to a folder with free space that this user may write."
            ) from None
    return str(folder)


def missing_python_packages(required: Sequence[Requirements]) -> MissingByStep:
    """Return the reasons for each step whose packages cannot be installed here. Packages that are not installed yet are
    looked up with uv, at most 60 s for each list of packages."""
    missing_of: dict[tuple[str, ...], tuple[MissingRequirement, ...]] = {(): ()}
    for requirements in required:
        if (packages := requirements.packages) not in missing_of:
            invalid = invalid_packages(packages)
            requirement = _find_missing([package for package in packages if package not in invalid])
            missing_of[packages] = (*invalid.values(), *([requirement] if requirement is not None else []))
    return {r.step: missing_of[r.packages] for r in required if missing_of[r.packages]}


def _find_missing(requirements: Sequence[str]) -> MissingRequirement | None:
    unique, installed = sorted(set(requirements)), _installed()
    if not unique or _folder(unique, installed).exists():
        return None
    try:
        _missing(unique, installed, time.monotonic() + RESOLVE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        reason = str(_too_slow("found", unique, RESOLVE_TIMEOUT_S))
    except PackagesError as error:
        reason = str(error)
    else:
        return None
    return MissingRequirement(verb="needs", what="packages that this machine cannot install", remedy=reason)


def invalid_packages(packages: Sequence[str]) -> dict[str, MissingRequirement]:
    """Return the lack for each invalid requirement, without a request to an index."""
    from packaging.requirements import InvalidRequirement, Requirement  # late, for its weight

    invalid = {}
    for text in packages:
        try:
            Requirement(text)
        except InvalidRequirement:
            if "/" not in text:  # uv accepts paths too
                thing = f"the package {text!r}, which is no requirement"
                remedy = "Expected a name, such as 'lxml' or 'lxml>=5'."
                invalid[text] = MissingRequirement(verb="needs", what=thing, remedy=remedy)
    return invalid


def _folder(packages: list[str], installed: list[str]) -> Path:
    cache = Path(os.environ.get("MARIN_PACKAGES_DIR") or Path.home() / ".cache" / "marin" / "packages")
    return cache / _digest(packages, installed)


def _too_slow(done: str, packages: list[str], timeout_s: float) -> PackagesError:
    return PackagesError(
        f"The packages {_named(packages)} were not {done} within {timeout_s:g} s. "
        "Check that this machine reaches the package index, or put them into its image."
    )


def _build(folder: Path, packages: list[str], installed: list[str], end_s: float) -> None:
    """Build a temporary folder, then rename it to `folder`."""
    for leftover in folder.parent.glob(f"{folder.name}.*.tmp"):  # of a killed process
        shutil.rmtree(leftover)
    temporary = folder.with_suffix(f".{uuid.uuid4().hex[:8]}.tmp")
    temporary.mkdir()
    try:
        missing = _missing(packages, installed, end_s)
        if missing:
            options = ["--no-deps", "--target", str(temporary)]
            _uv(packages, [*options, "--requirements", "-"], "\n".join(missing), end_s)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _missing(packages: list[str], installed: list[str], end_s: float) -> list[str]:
    """Return the requirements that the environment lacks, each with its version or URL.

    uv prints them in lines such as " + lxml==6.0.0" and " + lxml @ https://…". --break-system-packages permits an
    environment that a distribution manages; a dry run changes nothing.
    """
    with tempfile.NamedTemporaryFile("w", prefix="installed-", suffix=".txt") as constraints:
        constraints.write("\n".join(installed))
        constraints.flush()
        options = ["--dry-run", "--break-system-packages", "--constraints", constraints.name]
        printed = _uv(packages, [*options, "--requirements", "-"], "\n".join(packages), end_s)
    return [line.removeprefix(" + ").strip() for line in printed.splitlines() if line.startswith(" + ")]


def _uv(packages: list[str], options: list[str], requirements: str, end_s: float) -> str:
    """Run `uv pip install` and return its stderr. Raises PackagesError with uv's reason."""
    done = subprocess.run(
        [_find_uv(), "pip", "install", "--python", sys.executable, *options],
        input=requirements,
        capture_output=True,
        text=True,
        timeout=max(0.01, end_s - time.monotonic()),
        env={"UV_SYSTEM_CERTS": "true", **os.environ, **UV_SETTINGS},
        check=False,
    )
    if done.returncode != 0:
        raise PackagesError(
            f"The packages {_named(packages)} cannot be installed: {_reason(done.stderr)} "
            "Fix the step's packages, or put them into its environment."
        )
    return done.stderr


def _find_uv() -> str:
    """Return the path of uv, from this environment or from PATH."""
    with contextlib.suppress(ImportError, FileNotFoundError):
        import uv  # late: not every environment has it

        return uv.find_uv_bin()
    path = shutil.which("uv")
    if path is None:
        raise PackagesError(
            "Packages beyond a step's extras are installed with uv, which this machine lacks. Install uv in the "
            "environment or the image, or put the packages there."
        )
    return path


def _reason(printed: str) -> str:
    """Return uv's error in one line, without the text before it and the hints after it."""
    start = max(printed.find("error:"), printed.find("×"), 0)
    text = printed[start:].partition("\nhint:")[0].removeprefix("error:").replace("\n  cause:", ":")
    return " ".join(text.translate(_FRAMES).split()).rstrip(".") + "."


def _installed() -> list[str]:
    """Return each distribution of this environment with its version, as constraints.

    They come from the names of the folders: reading the metadata of hundreds takes longer than everything else here.
    """
    distributions: set[tuple[str, str]] = set()
    for folder in filter(os.path.isdir, sys.path):
        for name in os.listdir(folder):
            if name.endswith(".dist-info"):
                project, _, version = name.removesuffix(".dist-info").rpartition("-")
                distributions.add((project, version))
    return sorted(f"{name}=={version}" for name, version in distributions if name and version)


def _digest(packages: list[str], installed: list[str]) -> str:
    platform = [sys.implementation.cache_tag, sysconfig.get_platform()]
    return hashlib.sha256("\n".join([*packages, "", *platform, "", *installed]).encode()).hexdigest()[:32]


@contextlib.contextmanager
def _locked(path: Path, end_s: float) -> Iterator[None]:
    """Lock against other processes; the kernel releases the lock of a dead one. Raises TimeoutError after `end_s`."""
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
"""Box-drawing characters that uv prints around its reasons."""
