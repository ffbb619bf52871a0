"""The lease on a local disk: a kernel lock on the file.

A kill frees the lock at once, so no time-out is needed: one of our files without a lock on it is a free lease. The
heartbeat only checks that the file still exists, and updates its timestamp for people and for Marin. Marin itself holds
no kernel lock while it computes; Marin's file is a lease while it is renewed, as in a bucket.
"""

from __future__ import annotations

import dataclasses
import fcntl
import os
import threading
import time

from marin_resources.storage.control.disk import open_regular
from marin_resources.storage.filesystems.rights import NoRightError
from marin_resources.storage.filesystems.sharing import make_folders, share_file
from marin_resources.storage.lease import text as lease_text
from marin_resources.storage.lease.heartbeat import Heartbeat, clock_s
from marin_resources.storage.lease.protocol import LeaseHeldError, LeaseLostError, LeaseObserver
from marin_resources.storage.lease.text import ttl_s
from marin_resources.storage.paths import absolute
from marin_resources.types.output import Holder
from marin_resources.types.versioned_json import ControlFileError

ACQUIRE_PATIENCE_S = 0.5
"""Time limit of an acquisition that waits for a reader: reading the holder takes a shared lock for a moment."""


class DiskLease:
    def __init__(self, path: str, fd: int, holder: Holder) -> None:
        self.path, self._fd, self.holder = path, fd, holder
        self._using = threading.Lock()
        self._heartbeat = Heartbeat(self._renew, ttl_s=ttl_s(), began_s=clock_s(), expires=False)

    def check(self) -> None:
        self._heartbeat.check()
        with self._using:
            self._check_file()

    def observe(self, observer: LeaseObserver) -> None:
        self._heartbeat.observe(observer)

    def release(self) -> None:
        """Release the lock, and remove the file while the lock on it is still ours."""
        self._heartbeat.stop()
        with self._using:
            if self._fd < 0:
                return
            if _same_file(self._fd, self.path):  # else the file is another holder's, who removes it
                os.unlink(self.path)
            os.close(self._fd)
            self._fd = -1

    def _renew(self) -> None:
        with self._using:
            if self._fd >= 0:
                self._check_file()
                _write(self._fd, self.holder)

    def _check_file(self) -> None:
        if self._fd < 0 or not _same_file(self._fd, self.path):
            raise LeaseLostError(
                f"The lease {self.path!r} was removed or replaced while it was held. Nothing is published; run again."
            )


def acquire_on_disk(path: str, holder: Holder, stale: str | None) -> DiskLease:
    """Acquire the lock. Raises LeaseHeldError, also for a lease of Marin's unless its generation is `stale`; and
    NoRightError."""
    path = absolute(path)
    deadline = time.monotonic() + ACQUIRE_PATIENCE_S
    while True:
        shared = _make_folder(os.path.dirname(path))
        try:
            fd = open_regular(path, os.O_RDWR | os.O_CREAT)
        except FileNotFoundError:  # the folder of a purged output was removed in between
            continue
        except NoRightError:
            if not shared or time.monotonic() > deadline:
                raise
            time.sleep(0.02)  # another user has created it, and is about to share it
            continue
        if shared:
            share_file(fd)
        if _try_lock(fd, fcntl.LOCK_EX):
            other = _marin_holder(fd, path)
            if not _same_file(fd, path):
                os.close(fd)  # the last holder removed it between our open and our lock
                continue
            if other is None or other.generation == stale:
                _write(fd, holder)
                return DiskLease(path, fd, holder)
            os.close(fd)
            raise LeaseHeldError(os.path.dirname(path), other)
        os.close(fd)
        if time.monotonic() > deadline and (other := disk_holder(path)) is not None:
            raise LeaseHeldError(os.path.dirname(path), other)
        time.sleep(0.02)


def disk_holder(path: str) -> Holder | None:
    """The holder of the lock, or None if it is free. Raises ControlFileError for what is not a file."""
    try:
        fd = open_regular(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        if _try_lock(fd, fcntl.LOCK_SH):
            return _marin_holder(fd, path)
        holder = lease_text.parse(os.pread(fd, 65536, 0), "", path)
        return dataclasses.replace(holder, ttl_s=None) if holder else None
    finally:
        os.close(fd)


def _marin_holder(fd: int, path: str) -> Holder | None:
    """The holder of a file without a kernel lock, by its text: Marin, or None."""
    text = os.pread(fd, 65536, 0)
    holder = lease_text.parse(text, text.decode(errors="replace"), path) if text else None
    return holder if holder is not None and holder.host == "?" else None


def _make_folder(folder: str) -> bool:
    """Create the folder of the output; return whether a group shares it. Raises ControlFileError if a file is in its
    place."""
    try:
        return make_folders(folder)
    except (FileExistsError, NotADirectoryError):
        raise ControlFileError(
            f"The output {folder!r} cannot be created, as a file is in its place. Move that file aside."
        ) from None


def _try_lock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _same_file(fd: int, path: str) -> bool:
    try:
        return os.fstat(fd).st_ino == os.stat(path).st_ino
    except FileNotFoundError:
        return False


def _write(fd: int, holder: Holder) -> None:
    text = lease_text.held_text(holder, time.time())
    os.pwrite(fd, text, 0)
    os.ftruncate(fd, len(text))
