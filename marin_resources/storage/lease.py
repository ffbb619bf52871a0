"""`.executor_status.lock`: one writer for an output. On local disk a lock that the kernel frees when its holder dies.

The file holds JSON that says who works here (Marin's fields `worker_id` and `timestamp` among them). What counts is
not the text but the flock on the file: a file without a lock on it is nobody's.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
import uuid
from datetime import UTC, datetime

from marin_resources.output import Holder
from marin_resources.settings import SettingError
from marin_resources.storage.files import filesystem_of, is_local, join

NAME = ".executor_status.lock"
FORMAT_VERSION = 1
ACQUIRE_PATIENCE_S = 0.5
"""How long an acquisition rides out the moment in which someone only looks (`holder_of` takes a shared lock)."""


class LeaseHeldError(RuntimeError):
    """Someone else works on the output."""

    def __init__(self, path: str, holder: Holder) -> None:
        super().__init__(f"{path!r} is being made by {holder.describe()}.")
        self.holder = holder


class LeaseLostError(RuntimeError):
    """The lease is not ours any more, so nothing may be published."""


class LocalLease:
    """A held lease. `release()` it, or die."""

    def __init__(self, path: str, fd: int, holder: Holder) -> None:
        self.path, self._fd, self.holder = path, fd, holder

    def check(self) -> None:
        """Raise LeaseLostError if the file that is locked is not the one at the path any more."""
        try:
            if os.fstat(self._fd).st_ino == os.stat(self.path).st_ino:
                return
        except FileNotFoundError:
            pass  # the same as another file in its place: told below
        raise LeaseLostError(
            f"The lease {self.path!r} was removed or replaced while its holder worked. Nothing is published; run again."
        )

    def release(self) -> None:
        """Give the lease up. The file goes too, while the lock on it is still ours."""
        try:
            self.check()
            os.unlink(self.path)
        except LeaseLostError:
            pass  # somebody else's file lies there now, which is theirs to remove
        finally:
            os.close(self._fd)


def refuse_prefix_without_leases(prefix: str) -> None:
    """Raise SettingError for a prefix where no lease can be held, before anything is looked at or computed."""
    if not is_local(prefix):
        raise SettingError(
            f"The prefix {prefix!r} is not on a local disk, and one writer for an output is kept only there so far. "
            "Set MARIN_PREFIX to a folder."
        )


def acquire(output_path: str, run_id: str | None) -> LocalLease:
    """Take the lease of the output at `output_path`. Raises LeaseHeldError."""
    path = _lock_path(output_path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    deadline = time.monotonic() + ACQUIRE_PATIENCE_S
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if _try_lock(fd, fcntl.LOCK_EX):
            if _same_file(fd, path):
                return LocalLease(path, fd, _sign(fd, run_id))
            os.close(fd)  # its last holder removed it between our open and our lock
            continue
        os.close(fd)
        if time.monotonic() > deadline and (holder := holder_of(output_path)) is not None:
            raise LeaseHeldError(output_path, holder)
        time.sleep(0.02)


def holder_of(output_path: str) -> Holder | None:
    """Who holds the lease now, or None."""
    try:
        fd = os.open(_lock_path(output_path), os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return None if _try_lock(fd, fcntl.LOCK_SH) else _read_holder(fd)
    finally:
        os.close(fd)


def _lock_path(output_path: str) -> str:
    refuse_prefix_without_leases(output_path)
    return filesystem_of(join(output_path, NAME))[1]


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


def _sign(fd: int, run_id: str | None) -> Holder:
    now = datetime.now(UTC)
    holder = Holder(
        owner=uuid.uuid4().hex, host=os.uname().nodename, pid=os.getpid(), run_id=run_id, since=now.isoformat()
    )
    text = {"format_version": FORMAT_VERSION, "worker_id": holder.owner, "timestamp": now.timestamp(), **vars(holder)}
    os.ftruncate(fd, 0)
    os.pwrite(fd, json.dumps(text).encode(), 0)
    return holder


def _read_holder(fd: int) -> Holder:
    try:
        text = json.loads(os.pread(fd, 65536, 0))
    except ValueError:  # the holder has the lock and is just signing
        text = {}
    return Holder(
        owner=text.get("owner", text.get("worker_id", "?")),
        host=text.get("host", "?"),
        pid=text.get("pid", 0),
        run_id=text.get("run_id"),
        since=text.get("since", "?"),
    )
