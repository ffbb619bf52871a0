"""All files of an output, as they are listed, and their removal: data first, the record last.

The lease and the commit object are not among them. In a bucket exactly the listed generations are removed.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from marin_resources.storage import fault_points
from marin_resources.storage.collect.errors import KeptError
from marin_resources.storage.control import control
from marin_resources.storage.control.disk import remove_empty_folder
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.files import StoredFile, stored_files
from marin_resources.storage.lease import lease
from marin_resources.storage.lease.protocol import Lease
from marin_resources.storage.output import commit, record, status
from marin_resources.storage.paths import absolute, is_local, join

REQUESTS_AT_ONCE = 32
STAYS = frozenset({lease.NAME, commit.NAME})
_INSIDE = (f"/{status.NAME}", f"/{record.NAME}", f"/{lease.NAME}")


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The files below a path, as they were listed."""

    path: str
    files: tuple[StoredFile, ...]
    """In the order of their removal. A link is listed as itself."""


def list_contents(path: str) -> Contents:
    """List the files below `path`. Raises KeptError if another output is inside."""
    files = _on_disk(absolute(path)) if is_local(path) else _in_bucket(path)
    other = next((f for f in files if f.name.endswith(_INSIDE) and not f.name.startswith(".marin/")), None)
    if other is not None:
        raise KeptError(f"the output {join(path, other.name.rpartition('/')[0])!r} is inside")
    return Contents(path=path, files=tuple(sorted((f for f in files if f.name not in STAYS), key=_order)))


def remove_contents(contents: list[Contents], held: Lease) -> int:
    """Remove the listed files; return their bytes. Raises LeaseLostError if the lease is lost."""
    for listing in contents:
        if is_local(listing.path):
            for file in listing.files:
                _remove_on_disk(file, held)
            continue
        data = [file for file in listing.files if not _is_control(file)]
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
            list(pool.map(lambda file: _remove_object(file, held), data))
        for file in listing.files[len(data) :]:
            _remove_object(file, held)
        if listing is not contents[-1]:
            _remove_commit_copy(listing.path)
    return sum(file.size_bytes for listing in contents for file in listing.files)


def remove_folders(path: str) -> None:
    """Remove the empty folders of an output on a disk, and its own, but none that another process has written into."""
    if not is_local(path):
        return
    for folder, _, _ in os.walk(absolute(path), topdown=False):
        remove_empty_folder(folder)


def _order(file: StoredFile) -> tuple[int, str]:
    """Data, then what is known of attempts, then the record."""
    return (0 if not _is_control(file) else 2 if file.name == record.NAME else 1, file.name)


def _is_control(file: StoredFile) -> bool:
    return file.name.startswith((".marin/", ".executor_"))


def _in_bucket(path: str) -> list[StoredFile]:
    try:
        return stored_files(path, hidden=True)
    except FileNotFoundError:
        return []


def _on_disk(root: str) -> list[StoredFile]:
    files = []
    for folder, folders, names in os.walk(root):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in [*names, *links]:
            place = os.path.join(folder, name)
            with suppress(FileNotFoundError):
                state = os.lstat(place)
                relative = os.path.relpath(place, root)
                files.append(
                    StoredFile(path=place, name=relative, size_bytes=state.st_size, stamp=str(state.st_mtime_ns))
                )
    return files


def _remove_on_disk(file: StoredFile, held: Lease) -> None:
    held.check()
    with suppress(FileNotFoundError):
        os.unlink(file.path)
    fault_points.reach("data half removed")


def _remove_object(file: StoredFile, held: Lease) -> None:
    held.check()
    try:
        control.delete(file.path, expected=file.stamp)
    except ConflictError:
        return  # an attempt has written it since, or an earlier try of this removal succeeded
    fault_points.reach("data half removed")


def _remove_commit_copy(path: str) -> None:
    """Beside data elsewhere the commit object is a copy like the others."""
    snapshot = control.read(join(path, commit.NAME))
    if snapshot is not None:
        with suppress(ConflictError):
            control.delete(join(path, commit.NAME), expected=snapshot.generation)
