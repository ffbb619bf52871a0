"""The files of a commit that globs choose. Only folders that a glob can match are listed.

`*`, `?` and `[…]` stand for letters of one name, `**` for any folders. Names that begin with a dot are left out and
counted. A chosen name that a store or a disk cannot hold as it is, and two that differ in case alone, are refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from marin_assets.stages.download.hub.repository import COMMIT, HubConfigError, HubError, HubFile, MissingEntryError
from marin_assets.stages.download.hub.source import Source

MOST_NAME_BYTES = 220
"""255 is the limit of disks; the names of temporary files are up to 30 longer."""
MOST_PATH_BYTES = 900
"""1024 is the limit of buckets, with the prefix and the step."""
_WILD = re.compile(r"[*?\[]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Choice:
    files: tuple[HubFile, ...]
    """Sorted by path."""
    left_out: Mapping[str, int]
    """Number of files by reason: "hidden", "excluded"."""


def list_files(source: Source, commit: str, globs: Iterable[str]) -> list[HubFile]:
    """The files of a commit in the folders that the globs can match. Raises HubError."""
    rows: dict[str, HubFile] = {}
    for folder, recursive in _folders(globs).items():
        for path, file in _files(source, commit, folder, recursive):
            if path in rows:
                raise HubError(f"The listing of {source.repository} has {path!r} twice, expected each path once.")
            rows[path] = file
    return [rows[path] for path in sorted(rows)]


def choose(
    source: Source, files: Sequence[HubFile], include: Sequence[str], exclude: Sequence[str], reserved: str
) -> Choice:
    """The files that a glob of `include` matches and none of `exclude`.

    Raises HubError if none is left, or for a name that cannot be stored; `reserved` is a name of the output.
    """
    included, excluded = matcher(include), matcher(exclude)
    left_out: Counter[str] = Counter(hidden=0, excluded=0)
    chosen = []
    for file in files:
        if not included(file.path):
            continue
        if any(part.startswith(".") and part not in (".", "..") for part in file.path.split("/")):
            left_out["hidden"] += 1
        elif excluded(file.path):
            left_out["excluded"] += 1
        else:
            chosen.append(file)
    if not chosen:
        listed = ", ".join(repr(file.path) for file in files[:3]) or "no file"
        raise HubError(
            f"No file of {source.repository} is chosen by the globs {list(include)!r} without {list(exclude)!r}; it "
            f"has {listed}. Correct the globs."
        )
    _refuse_names(source, [file.path for file in chosen], reserved)
    return Choice(files=tuple(chosen), left_out=dict(left_out))


def matcher(globs: Iterable[str]) -> Callable[[str], bool]:
    """A function from a path to whether a glob matches it. Raises HubConfigError."""
    try:
        patterns = [_pattern(glob) for glob in globs]
    except (ValueError, re.error) as error:
        raise HubConfigError(f"One of the globs {list(globs)!r} is not a glob: {error}. Correct it.") from None
    return lambda path: any(pattern.match(path) for pattern in patterns)


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    from fsspec.utils import glob_translate  # late; the globs are those of fsspec, as in download_files

    return re.compile(glob_translate(glob))


def _folders(globs: Iterable[str]) -> dict[str, bool]:
    """The folders to list, and whether with the folders below. None of them is inside another that is."""
    folders: dict[str, bool] = {}
    for glob in globs:
        parts = glob.split("/")
        fixed = next((i for i, part in enumerate(parts) if _WILD.search(part)), len(parts) - 1)
        folder = "/".join(parts[:fixed])
        folders[folder] = folders.get(folder, False) or fixed < len(parts) - 1 or "**" in parts[fixed]
    deep = [folder for folder, recursive in folders.items() if recursive]
    return {
        folder: recursive
        for folder, recursive in folders.items()
        if not any(folder != above and (not above or folder.startswith(f"{above}/")) for above in deep)
    }


def _files(source: Source, commit: str, folder: str, recursive: bool) -> Iterator[tuple[str, HubFile]]:
    try:
        for row in source.entries(commit, folder, recursive=recursive):
            if not isinstance(row, dict) or row.get("type") != "directory":
                file = _file(source, row)
                yield file.path, file
    except MissingEntryError:  # a glob in a folder that does not exist matches nothing
        return


def _file(source: Source, row: Any) -> HubFile:
    """A row of the listing. Raises HubError for one without the fields that a file has."""
    try:
        large = row.get("lfs")
        file = HubFile(
            path=row["path"],
            size_bytes=large["size"] if large else row["size"],
            oid=row["oid"],
            sha256=large["oid"] if large else None,
        )
        is_file = isinstance(file.path, str) and isinstance(file.size_bytes, int) and file.size_bytes >= 0
        is_known = all(map(bool, (COMMIT.fullmatch(file.oid), file.sha256 is None or _SHA256.fullmatch(file.sha256))))
    except (AttributeError, KeyError, TypeError):
        is_known = is_file = False
    if not is_file or not is_known:
        raise HubError(
            f"The listing of {source.repository} has the row {row!r:.200}, expected a path, a size and the checksum of "
            "a file."
        )
    return file


def _refuse_names(source: Source, paths: Sequence[str], reserved: str) -> None:
    by_spelling: dict[str, str] = {}
    folders = {path[:i] for path in paths for i, letter in enumerate(path) if letter == "/"}
    for path in paths:
        other = by_spelling.setdefault(unicodedata.normalize("NFC", path).casefold(), path)
        if other != path:
            reason = f"is also there as {other!r}, which differs in case alone"
        elif path == reserved:
            reason = "is a name reserved for the output"
        elif path in folders:
            reason = "is both a file and a folder"
        else:
            reason = _reason_against(path)
        if reason:
            raise HubError(
                f"The file {path!r:.300} of {source.repository} cannot be stored under its name: it {reason}. Leave it "
                "out with exclude."
            )


def _reason_against(path: str) -> str:
    parts = path.split("/")
    if _CONTROL.search(path):
        return "has a character that is no letter"
    if any(part in ("", ".", "..") for part in parts):
        return "leads out of the folder"
    if max(len(part.encode()) for part in parts) > MOST_NAME_BYTES or len(path.encode()) > MOST_PATH_BYTES:
        return f"is longer than {MOST_NAME_BYTES} bytes a name or {MOST_PATH_BYTES} a path"
    return ""
