"""Pack a working directory into one zip: .gitignore and .rayignore are honoured, the same files give the same zip.

A process packs a directory once and keeps the bytes. So all its jobs run the same code, whatever is edited meanwhile,
also on a cluster that has lost the package.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from pathspec import GitIgnoreSpec

from marin_resources.configuration.settings import SettingError

IGNORE_FILES = (".gitignore", ".rayignore")
"""Honoured in every folder. A file is left out if any of them excludes it: a rule below cannot include it again."""
NEVER_SHIPPED = (".git", ".venv", "__pycache__", ".env", ".env.*", ".envrc", "/.tools", "/outputs", "/.dagster")
"""Patterns as in .gitignore. Excluded besides: the prefix and Dagster's home, if they are below the directory."""
MAX_BYTES = 100 * 2**20
"""The dashboard's limit for one request (Ray's DASHBOARD_CLIENT_MAX_SIZE), below that of its store (512 MiB)."""
SHOWN_FILES = 5
TRIES = 3
"""Packing starts again if a file vanishes meanwhile, such as an editor's or a test's."""
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest in a zip. Fixed, so that a fresh checkout gives the same bytes."""


class CodeError(SettingError):
    """The code cannot be shipped to the cluster: one sentence."""


@dataclass(frozen=True, kw_only=True)
class Package:
    root: str
    uri: str
    """Contains the digest of names, modes and bytes: the same files, the same URI."""
    files: frozenset[str]
    """Relative to the root."""
    data: bytes = field(repr=False)
    sources: Mapping[str, bytes] = field(repr=False)
    """The packed Python files, by their paths on this machine."""

    def has_folder(self, relative: str) -> bool:
        """Whether a file below the folder is packed; "." is the root."""
        return relative == "." or any(name.startswith(f"{relative}/") for name in self.files)


def package_of(root: str) -> Package:
    """Return the package of a directory as of this process's first call. Blocks. Raise CodeError."""
    with _LOCK:
        if root not in _PACKED:
            _PACKED[root] = _pack(root)
        return _PACKED[root]


def _pack(root: str) -> Package:
    if not os.path.isdir(root):
        raise CodeError(f"The working directory {root!r} is not a folder, so it cannot be shipped to the cluster.")
    for _ in range(TRIES - 1):
        with suppress(FileNotFoundError):
            return _pack_once(root)
    return _pack_once(root)


def _pack_once(root: str) -> Package:
    try:
        paths = dict(_walk(root, "", (("", _own_rules(root)),), frozenset()))
        sizes = {name: os.path.getsize(path) for name, path in paths.items() if not name.endswith("/")}
        _refuse_too_large(root, sizes, sum(sizes.values()))
        digest, data, sources = _zip(paths)
        _refuse_too_large(root, sizes, len(data))  # names take room too
        return Package(
            root=root, uri=f"gcs://_ray_pkg_{digest}.zip", files=frozenset(sizes), data=data, sources=sources
        )
    except PermissionError as error:
        raise CodeError(
            f"The working directory {root!r} cannot be packed for the cluster ({error}). Make it readable, or list it "
            "in .gitignore."
        ) from error


def sources_below(root: str) -> dict[str, bytes]:
    """The Python files that a package of the directory would have, by path, as they are now. Blocks."""
    sources: dict[str, bytes] = {}
    for name, path in _walk(root, "", (("", _own_rules(root)),), frozenset()):
        if name.endswith(".py"):
            with suppress(FileNotFoundError), open(path, "rb") as file:  # removed since it was listed
                sources[path] = file.read()
    return sources


Rules = tuple[tuple[str, GitIgnoreSpec], ...]
"""Each with the folder that its patterns are relative to."""


def _walk(folder: str, relative: str, rules: Rules, above: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield (name in the zip, path) of each file that no rule excludes, and of empty folders. Links are followed."""
    real = os.path.realpath(folder)
    if real in above:  # a link to a folder above
        return
    rules = (*rules, *_rules_in(folder, relative))
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    if relative and not entries:
        yield relative, folder
    for entry in entries:
        name = f"{relative}{entry.name}{'/' if entry.is_dir() else ''}"
        if any(spec.match_file(name.removeprefix(base)) for base, spec in rules):
            continue
        if entry.is_dir():
            yield from _walk(entry.path, name, rules, above | {real})
        elif entry.is_file():
            yield name, entry.path


def _rules_in(folder: str, relative: str) -> Iterator[tuple[str, GitIgnoreSpec]]:
    for name in IGNORE_FILES:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            with open(path, errors="surrogateescape") as file:
                yield relative, GitIgnoreSpec.from_lines(file)


def _own_rules(root: str) -> GitIgnoreSpec:
    """`NEVER_SHIPPED`, and the folders that runs write to, if they are below the root."""
    patterns = list(NEVER_SHIPPED)
    for variable in ("MARIN_PREFIX", "DAGSTER_HOME", "MARIN_STATE_DIR"):
        value = os.environ.get(variable, "")
        path = os.path.abspath(value)
        if value and "://" not in value and path.startswith(f"{root}/"):
            patterns.append(re.sub(r"([*?\[\]\\! #])", r"\\\1", path.removeprefix(root)))
    return GitIgnoreSpec.from_lines(patterns)


def _zip(paths: Mapping[str, str]) -> tuple[str, bytes, dict[str, bytes]]:
    """Return the digest of names, modes and bytes, the uncompressed zip, sorted by name, and the Python files."""
    digest, buffer, sources = hashlib.sha1(usedforsecurity=False), io.BytesIO(), dict[str, bytes]()
    with zipfile.ZipFile(buffer, "w") as zipped:
        for name in sorted(paths):
            mode, content = os.stat(paths[name]).st_mode, b""
            if stat.S_ISREG(mode):
                with open(paths[name], "rb") as file:
                    content = file.read()
                if name.endswith(".py"):
                    sources[paths[name]] = content
            info = zipfile.ZipInfo(name, ZIP_TIME)
            info.external_attr = mode << 16
            zipped.writestr(info, content)
            of_content = hashlib.sha1(content, usedforsecurity=False).hexdigest()
            digest.update(f"{name}\0{mode:o}\0{of_content}\0".encode())
    return digest.hexdigest(), buffer.getvalue(), sources


def _refuse_too_large(root: str, sizes: Mapping[str, int], total_bytes: int) -> None:
    if not sizes:
        raise CodeError(
            f"The ignore files of the working directory {root!r} leave nothing of it to ship. Remove patterns from "
            "them, or set MARIN_CLUSTER_WORKING_DIR."
        )
    if total_bytes >= MAX_BYTES:
        largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:SHOWN_FILES]
        listed = ", ".join(f"{name!r} ({_mib(sizes[name])})" for name in largest)
        raise CodeError(
            f"The working directory {root!r} has {_mib(total_bytes)} to ship, and the cluster takes less than "
            f"{_mib(MAX_BYTES)}. The largest files are {listed}. List in .gitignore what a step does not need."
        )


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:.1f} MiB"


_LOCK = threading.Lock()
_PACKED: dict[str, Package] = {}
