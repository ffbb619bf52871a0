"""List the data files of a folder on a local disk: through symlinks, and never a FIFO, a socket or a device."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
Folders = frozenset[tuple[int, int]]
"""Device and inode of folders."""


class SpecialFileError(OSError):
    """A FIFO, a socket or a device in place of a file: reading it could block for ever."""


def data_files(root: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield path and state of each file at or below `root`, without names that begin with a dot.

    Symlinks are followed, to folders too. A link to a folder that contains it is left out: its files are listed anyway.
    Raises SpecialFileError, FileNotFoundError for a link to nothing, and PermissionError.
    """
    state = os.stat(root)
    if stat.S_ISDIR(state.st_mode):
        yield from _below(root, state, frozenset())
    else:
        require_file(root, state)
        yield root, state


def require_file(path: str, state: os.stat_result) -> None:
    """Raise SpecialFileError unless `state` is that of a file or a folder."""
    kind = KINDS.get(stat.S_IFMT(state.st_mode))
    if kind:
        raise SpecialFileError(f"{path!r} is {kind}, expected a file. Move it out of the input.")


def _below(folder: str, state: os.stat_result, above: Folders) -> Iterator[tuple[str, os.stat_result]]:
    above |= {(state.st_dev, state.st_ino)}
    try:
        with os.scandir(folder) as entries:
            visible = sorted((e for e in entries if not e.name.startswith(".")), key=lambda entry: entry.name)
    except FileNotFoundError:
        return  # removed since
    for entry in visible:
        try:
            found = entry.stat()
        except FileNotFoundError:
            if entry.is_symlink():
                raise _broken(entry.path) from None
            continue  # removed since
        if not stat.S_ISDIR(found.st_mode):
            require_file(entry.path, found)
            yield entry.path, found
        elif (found.st_dev, found.st_ino) not in above:
            yield from _below(entry.path, found, above)


def _broken(path: str) -> FileNotFoundError:
    return FileNotFoundError(
        f"{path!r} is a symlink to {os.readlink(path)!r}, which does not exist. Restore that, or remove the link."
    )
