"""A working directory as one package, packed as Ray packs it: .gitignore and .rayignore are honoured.

A process packs a directory once and keeps the bytes: what it ships for its last job is what it shipped for its first,
whatever is edited in between, also to a cluster that has lost it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from marin_resources.settings import SettingError

NEVER_SHIPPED = (".git", ".venv", "__pycache__", ".env", ".env.*", ".envrc", "/.tools", "/outputs", "/.dagster")
"""As .gitignore would have them; with the prefix and Dagster's home, where they lie in the directory."""
TOLD_FILES = 5
TRIES = 3
"""A file that is gone when its turn comes (an editor's, a test's) makes packing begin anew."""


class CodeError(SettingError):
    """Code that cannot be brought to the cluster: one sentence."""


@dataclass(frozen=True, kw_only=True)
class Package:
    root: str
    uri: str
    """Names the bytes: the same files, the same name."""
    files: frozenset[str]
    """Relative to the root."""
    data: bytes = field(repr=False)

    def has_folder(self, relative: str) -> bool:
        """Whether something below the folder is packed; "." is the root."""
        return relative == "." or any(name.startswith(f"{relative}/") for name in self.files)


def package_of(root: str) -> Package:
    """The package of a directory as it was when this process first asked. Blocks. Raises CodeError."""
    with _LOCK:
        if root not in _PACKED:
            _PACKED[root] = _pack(root)
        return _PACKED[root]


def _pack(root: str) -> Package:
    if not os.path.isdir(root):
        raise CodeError(f"The working directory {root!r} is not a folder, so it cannot be shipped to the cluster.")
    excludes = [*NEVER_SHIPPED, *_own_folders(root)]
    for _ in range(TRIES - 1):
        with suppress(FileNotFoundError):
            return _pack_once(root, excludes)
    return _pack_once(root, excludes)


def _pack_once(root: str, excludes: list[str]) -> Package:
    try:
        sizes = _sizes(root, excludes)
        _refuse_too_large(root, sizes, sum(sizes.values()))
        package = _packed(root, excludes)
        _refuse_too_large(root, sizes, len(package.data))  # names take room too
        return package
    except PermissionError as error:
        raise CodeError(
            f"The working directory {root!r} cannot be packed for the cluster ({error}). Make it readable, or list it "
            "in .gitignore."
        ) from error


def _packed(root: str, excludes: list[str]) -> Package:
    from ray._private.runtime_env.packaging import create_package

    with TemporaryDirectory(prefix="marin-package-") as folder:
        file = Path(folder, "package.zip")
        create_package(root, file, include_gitignore=True, excludes=excludes, logger=_QUIET)
        with zipfile.ZipFile(file) as opened:
            digest = _digest(opened)
            files = frozenset(name for name in opened.namelist() if not name.endswith("/"))
        return Package(root=root, uri=f"gcs://_ray_pkg_{digest}.zip", files=files, data=file.read_bytes())


def _digest(opened: zipfile.ZipFile) -> str:
    """Of names, modes and bytes, but not of times: copies of one checkout are one package."""
    digest = hashlib.sha1(usedforsecurity=False)
    for info in sorted(opened.infolist(), key=lambda info: info.filename):
        content = hashlib.sha1(opened.read(info), usedforsecurity=False).hexdigest()
        digest.update(f"{info.filename}\0{info.external_attr >> 16:o}\0{content}\0".encode())
    return digest.hexdigest()


def _sizes(root: str, excludes: list[str]) -> dict[str, int]:
    """Relative path -> bytes of all that would be packed."""
    from ray._private.runtime_env import packaging

    sizes: dict[str, int] = {}

    def add(path: Path) -> None:
        if path.is_file():
            sizes[str(path.relative_to(root))] = path.stat().st_size

    skip = packaging._get_excludes(Path(root), excludes)
    packaging._dir_travel(Path(root), [skip], add, include_gitignore=True, logger=_QUIET)
    return sizes


def _refuse_too_large(root: str, sizes: Mapping[str, int], total_bytes: int) -> None:
    limit = _limit_bytes()
    if not sizes:
        raise CodeError(
            f"The ignore files of the working directory {root!r} leave nothing of it to ship. "
            "Ray takes the pattern '.*' for all of it: write '.?*'."
        )
    if total_bytes >= limit:
        largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:TOLD_FILES]
        told = ", ".join(f"{name!r} ({_mib(sizes[name])})" for name in largest)
        raise CodeError(
            f"The working directory {root!r} has {_mib(total_bytes)} to ship, and the cluster takes less than "
            f"{_mib(limit)}. The largest files are {told}. List in .gitignore what a step does not need."
        )


def _limit_bytes() -> int:
    """What the dashboard reads of one request, and its store of one message."""
    from ray._private.ray_constants import DASHBOARD_CLIENT_MAX_SIZE
    from ray._private.runtime_env.packaging import GCS_STORAGE_MAX_SIZE

    return min(DASHBOARD_CLIENT_MAX_SIZE, GCS_STORAGE_MAX_SIZE)


def _own_folders(root: str) -> Iterator[str]:
    """Patterns of the folders that runs write to, where they lie below the root."""
    for name in ("MARIN_PREFIX", "DAGSTER_HOME", "MARIN_STATE_DIR"):
        value = os.environ.get(name, "")
        path = os.path.abspath(value)
        if value and "://" not in value and path.startswith(f"{root}/"):
            yield re.sub(r"([*?\[\]\\! #])", r"\\\1", path.removeprefix(root))


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:.1f} MiB"


_QUIET = logging.Logger("packing", logging.CRITICAL)
"""Ray names every ignore file that it reads, and remedies that are not ours."""
_LOCK = threading.Lock()
_PACKED: dict[str, Package] = {}
