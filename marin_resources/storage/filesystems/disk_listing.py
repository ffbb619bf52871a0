"""List the data files of a folder on a local disk: through symlinks, and never a FIFO, a socket or a device."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from typing import NoReturn

from marin_resources.types.errors import MarinError

KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
OnError = Callable[[str, OSError], object]
"""Gets the path of what is no file, and why."""
Folders = frozenset[tuple[int, int]]
"""Device and inode of folders."""


class SpecialFileError(MarinError, OSError):
    """A FIFO, a socket or a device in place of a file: reading it could block for ever."""


def raise_error(_path: str, error: OSError) -> NoReturn:
    """The default: what is no file ends the listing."""
    raise error


def data_files(root: str, on_error: OnError = raise_error) -> Iterator[tuple[str, os.stat_result]]:
    """Yield path and state of each file at or below `root`, without names that begin with a dot.

    Symlinks are followed, to folders too. A link to a folder that contains it is left out: its files are listed anyway.
    Raises SpecialFileError, FileNotFoundError for a link to nothing, and PermissionError. `on_error` gets each of them
    instead, and what can be read is yielded.
    """
    state = os.stat(root)
    if stat.S_ISDIR(state.st_mode):
        yield from _below(root, state, frozenset(), on_error)
    else:
        require_file(root, state)
        yield root, state


def require_file(path: str, state: os.stat_result) -> None:
    """Raise SpecialFileError unless `state` is that of a file or a folder."""
    kind = KINDS.get(stat.S_IFMT(state.st_mode))
    if kind:
        raise SpecialFileError(f"{path!r} is {kind}, expected a file. Move it out of the input.")


def require_target(path: str) -> None:
    """Raise FileNotFoundError for a symlink to nothing."""
    if os.path.islink(path) and not os.path.exists(path):
        raise _broken(path)


def _below(
    folder: str, state: os.stat_result, above: Folders, on_error: OnError
) -> Iterator[tuple[str, os.stat_result]]:
    above |= {(state.st_dev, state.st_ino)}
    try:
        with os.scandir(folder) as entries:
            visible = sorted((e for e in entries if not e.name.startswith(".")), key=lambda entry: entry.name)
    except FileNotFoundError:
        return  # removed since
    except OSError as error:
        on_error(folder, error)
        return
    for entry in visible:
        try:
            entry_state = entry.stat()
            if not stat.S_ISDIR(entry_state.st_mode):
                require_file(entry.path, entry_state)
        except FileNotFoundError:
            if entry.is_symlink():
                on_error(entry.path, _broken(entry.path))
            continue  # or it was removed since
        except OSError as error:  # also a link to itself
            on_error(entry.path, error)
            continue
        if not stat.S_ISDIR(entry_state.st_mode):
            yield entry.path, entry_state
        elif (entry_state.st_dev, entry_state.st_ino) not in above:
            yield from _below(entry.path, entry_state, above, on_error)


def _broken(path: str) -> FileNotFoundError:
    return FileNotFoundError(
        f"{path!r} is a symlink to {os.readlink(path)!r}, which does not exist. Restore that, or remove the link."
    )
