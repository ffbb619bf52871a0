"""List the files of an output, data and control files, with what is not a regular file.

In:  the path of an output.   Out: a `Listed` for each file, from one listing. No file is opened.

On a disk a symbolic link to a folder is not followed: the same files would be listed twice, and a link may lead out of
the output. A FIFO, a socket and a device are never opened, as a reader could wait there for ever.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from marin_resources.storage.filesystems.disk import describe_type
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.manifest.checksum import stored_checksum
from marin_resources.storage.paths import is_local

if TYPE_CHECKING:
    import fsspec

EMPTY_FOLDER = "an empty folder"


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A file as its store lists it now."""

    stored: str
    """Path of the file in the store's spelling."""
    name: str
    """Path of the file below the output."""
    size: int
    checksum: str | None = None
    """The store's own, if it has one."""
    irregular: str = ""
    """Kind of an irregular file, as a phrase; a link has the kind of its target."""
    link: str | None = None
    """The target of a symbolic link, as the link has it."""


def list_output(output_path: str) -> tuple[fsspec.AbstractFileSystem, list[Listed]]:
    """The filesystem, and every file below `output_path`, sorted by name; empty folders of a disk too."""
    fs, root = filesystem_of(output_path)
    files = _on_disk(root.rstrip("/")) if is_local(output_path) else _in_bucket(fs, root.rstrip("/"))
    return fs, sorted(files, key=lambda file: file.name)


def is_control(name: str) -> bool:
    """Whether a file of this name is a control file: its name or a folder above it begins with a dot."""
    return any(part.startswith(".") for part in name.split("/"))


def _in_bucket(fs: fsspec.AbstractFileSystem, root: str) -> Iterator[Listed]:
    for stored, info in fs.find(root, detail=True).items():
        if info["type"] != "directory":
            name = stored[len(root) + 1 :]
            yield Listed(stored=stored, name=name, size=int(info["size"]), checksum=stored_checksum(info))


def _on_disk(root: str) -> Iterator[Listed]:
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(folder))
        except (FileNotFoundError, NotADirectoryError):  # removed since it was listed
            continue
        folders += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        yield from (_listed(entry, root) for entry in entries if not entry.is_dir(follow_symlinks=False))
        if not entries and folder != root:
            yield Listed(stored=folder, name=folder[len(root) + 1 :], size=0, irregular=EMPTY_FOLDER)


def _listed(entry: os.DirEntry[str], root: str) -> Listed:
    link = os.readlink(entry.path) if entry.is_symlink() else None
    try:
        state: os.stat_result | None = os.stat(entry.path)
    except OSError:  # a link that leads nowhere, or to itself: its reader finds out
        state = None
    size, irregular = (state.st_size, _irregular(state.st_mode)) if state is not None else (0, "")
    if irregular and link is not None:
        irregular = f"a symbolic link to {irregular}, {link!r}"
    return Listed(stored=entry.path, name=entry.path[len(root) + 1 :], size=size, irregular=irregular, link=link)


def _irregular(mode: int) -> str:
    return "" if stat.S_ISREG(mode) else describe_type(mode)
