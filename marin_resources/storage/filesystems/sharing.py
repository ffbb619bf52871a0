"""Folders on a disk that a group shares: what is created there can be changed by the whole group, whatever the umask.

A folder is shared if its group may write into it and it has the setgid bit, by which the kernel gives the folder's
group to everything that is created in it (`chgrp lab FOLDER; chmod 2775 FOLDER`). A new folder and a new file in a
shared folder get the group's rights; the rights of others stay those of the umask. Folders that are not shared are
created as ever.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager

from marin_resources.storage.filesystems.rights import no_right
from marin_resources.storage.paths import absolute, is_local

SHARED = stat.S_ISGID | stat.S_IWGRP
GROUP_FILE = stat.S_IRGRP | stat.S_IWGRP
NEW_S = 1.0
"""Age of a folder up to which its creator, another user, may still be about to share it."""
PRIVATE = 0o077
"""The umask for the moment between reading the old one and setting the new one: other threads create files too."""

_group_writes = False
"""Whether `group_may_write` holds in this process: a umask can only be read by setting it."""


def is_shared(folder: str) -> bool:
    """Whether a group shares this folder, which exists. In a bucket no group does."""
    return is_local(folder) and _shares(os.stat(absolute(folder)))


def make_folders(folder: str) -> bool:
    """Create a folder and those above it, where they are missing; return whether a group shares it.

    Errors are those of `os.makedirs(folder, exist_ok=True)`; NoRightError is a PermissionError.
    """
    parent = os.path.dirname(folder) or "."
    try:
        state = os.stat(folder)
    except FileNotFoundError:
        shared = make_folders(parent)
        try:
            os.mkdir(folder)
        except FileExistsError:  # by another process in the meantime; or a link to nothing
            state = _folder_state(folder)
        except OSError as error:
            raise no_right(folder, error) from error
        else:
            if shared:
                os.chmod(folder, stat.S_IMODE(os.stat(folder).st_mode) | stat.S_IRWXG | stat.S_ISGID)
            return shared
    if not stat.S_ISDIR(state.st_mode):
        raise _exists(folder)
    if _shares(state):
        return True
    if state.st_uid == os.geteuid() or not _shares(os.stat(parent)):
        return False
    while not _shares(state := _folder_state(folder)):
        if time.time() - state.st_ctime > NEW_S:
            return False
        time.sleep(0.001)
    return True


def share_file(fd: int) -> None:
    """Let the group read and write an open file, if it is this user's. Call it for a file in a shared folder."""
    state = os.fstat(fd)
    mode = stat.S_IMODE(state.st_mode)
    if mode & GROUP_FILE != GROUP_FILE and state.st_uid == os.geteuid():
        os.fchmod(fd, mode | GROUP_FILE)


@contextmanager
def group_may_write(shared: bool) -> Iterator[None]:
    """Set the umask of this process and its children while the block runs, so that also what libraries create is the
    group's. Without `shared`, do nothing."""
    global _group_writes
    if not shared or _group_writes:
        yield
        return
    before = os.umask(PRIVATE)
    os.umask(before & ~stat.S_IRWXG)
    _group_writes = True
    try:
        yield
    finally:
        _group_writes = False
        os.umask(before)


def group_writes() -> bool:
    """Whether this process runs in a block of `group_may_write`."""
    return _group_writes


def _shares(state: os.stat_result) -> bool:
    return state.st_mode & SHARED == SHARED


def _folder_state(folder: str) -> os.stat_result:
    """Raises FileExistsError for what is no folder."""
    try:
        return os.stat(folder)
    except FileNotFoundError:
        raise _exists(folder) from None


def _exists(folder: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), folder)
