"""Control files on a local disk: compared and replaced while holding the kernel's lock on their folder."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from marin_resources.storage.control.protocol import ConflictError, Snapshot
from marin_resources.storage.filesystems.disk import describe_type, write_on_disk
from marin_resources.storage.filesystems.rights import is_denied, no_right
from marin_resources.storage.filesystems.sharing import make_folders
from marin_resources.storage.paths import absolute
from marin_resources.storage.watched_reads import watched
from marin_resources.types.versioned_json import ControlFileError


class DiskControlFiles:
    def read(self, path: str) -> Snapshot | None:
        """A regular file. Raises ControlFileError for anything else at `path`; a FIFO would block its reader."""
        try:
            with watched(open(open_regular(path, os.O_RDONLY), "rb"), path) as file:
                return Snapshot(file.read(), _generation(os.fstat(file.fileno())))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, path: str, data: bytes, expected: str | None) -> str:
        place = absolute(path)
        with locked(os.path.dirname(place)):
            if _generation_at(place) != expected:
                raise ConflictError(path)
            write_on_disk(place, data)
            return _generation(os.stat(place))

    def delete(self, path: str, expected: str) -> None:
        place = absolute(path)
        with locked(os.path.dirname(place)):
            if _generation_at(place) != expected:
                raise ConflictError(path)
            os.unlink(place)


def open_regular(path: str, flags: int) -> int:
    """Open the control file at `path`; return its descriptor.

    Raises ControlFileError for what is not a readable regular file, NoRightError if this user has no right to it,
    FileNotFoundError and NotADirectoryError.
    """
    place = absolute(path)
    with suppress(FileNotFoundError, NotADirectoryError):  # one look: another process may remove the file at any moment
        if not stat.S_ISREG(mode := os.stat(place).st_mode):  # a socket cannot be opened, not even to look at it
            raise _not_a_file(path, mode)
    try:
        fd = os.open(place, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        if is_denied(error):
            raise no_right(place, error, "written" if flags & os.O_RDWR else "read") from error
        raise ControlFileError(
            f"The control file {path!r} cannot be opened ({error.strerror}). Look at the file; move it aside if it is "
            "damaged."
        ) from error
    if not stat.S_ISREG(mode := os.fstat(fd).st_mode):  # it was replaced in between
        os.close(fd)
        raise _not_a_file(path, mode)
    return fd


def _not_a_file(path: str, mode: int) -> ControlFileError:
    return ControlFileError(f"The control file {path!r} is {describe_type(mode)}, expected a file. Move it aside.")


def _generation(state: os.stat_result) -> str:
    """Each write creates a new file, so the inode changes; a reused inode has another time."""
    return f"{state.st_ino}-{state.st_mtime_ns}-{state.st_size}"


def _generation_at(path: str) -> str | None:
    try:
        return _generation(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """Keep other processes on this machine from writing control files of the folder; create it if missing."""
    fd = _lock_folder(folder)
    try:
        yield
    finally:
        os.close(fd)


def remove_empty_folder(folder: str) -> bool:
    """Remove a folder if nothing is in it, and return whether it is gone. No writer of a control file notices."""
    try:
        fd = os.open(absolute(folder), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.rmdir(absolute(folder))
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    finally:
        os.close(fd)
    return True


def _lock_folder(folder: str) -> int:
    """The descriptor of the locked folder. Another process may remove an empty one at any moment before."""
    while True:
        try:
            make_folders(folder)
        except (FileExistsError, NotADirectoryError):
            raise ControlFileError(
                f"The folder {folder!r} of control files cannot be created, as a file is in its place. Move that file "
                "aside."
            ) from None
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        fcntl.flock(fd, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.fstat(fd).st_ino == os.stat(folder).st_ino:
                return fd
        os.close(fd)
