"""The log of an attempt in a bucket: a file on this machine, the spool, that is uploaded whole while it grows.

Where the spool lies is told by the log's path alone, so that shards in other processes append to it, and whoever
follows the log on this machine reads it at once. It is removed when all of it is in the bucket.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from types import TracebackType

from marin_resources.storage.upload.upload import upload

FIRST_UPLOAD_S = 5.0
UPLOAD_BYTES_PER_S = 1_000_000
"""On average: as the log is uploaded whole each time, a log of 100 MB is uploaded every 100 s."""
KEPT_S = 7 * 24 * 3600.0
"""So long the spool of a worker that was killed is kept, if nobody else has uploaded it."""

log = logging.getLogger(__name__)


def spool_of(path: str) -> str:
    """The spool of the log at `path`."""
    return os.path.join(_folder(), hashlib.sha256(path.encode()).hexdigest()[:32] + ".log")


class LogUploader:
    """While the block runs and once at its end, the spool is uploaded to `path`. Trouble is told and ends nothing."""

    def __init__(self, path: str) -> None:
        self._path, self._spool = path, spool_of(path)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-uploader", daemon=True)
        self._uploaded_bytes = 0

    def __enter__(self) -> str:
        """Returns the spool, which is there from now on."""
        _make_folder()
        with open(self._spool, "ab"):
            pass
        self._thread.start()
        return self._spool

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()
        upload_spool(self._path)

    def _run(self) -> None:
        wait_s = FIRST_UPLOAD_S
        while not self._over.wait(wait_s):
            try:
                wait_s = max(FIRST_UPLOAD_S, self._upload_if_grown() / UPLOAD_BYTES_PER_S)
            except Exception as error:  # whatever a store or its client says, the step goes on
                log.warning("the log cannot be uploaded now (%s: %s)", type(error).__name__, error)

    def _upload_if_grown(self) -> int:
        """Returns how many bytes there are."""
        size_bytes = os.path.getsize(self._spool)
        if size_bytes != self._uploaded_bytes:
            _upload(self._path)
            self._uploaded_bytes = size_bytes
        return size_bytes


def upload_spool(path: str) -> None:
    """Upload what is left of the log at `path` on this machine, and remove it here. Trouble is told on stderr."""
    spool = spool_of(path)
    try:
        _upload(path)
        os.unlink(spool)
    except FileNotFoundError:  # all is in the bucket, or the log is none of this machine's
        return
    except Exception as error:  # the step is done, or has its own error
        told = f"The log {path!r} cannot be uploaded ({type(error).__name__}: {error}). All of it is in {spool!r}."
        sys.stderr.write(f"{told}\n")
        with suppress(OSError), open(spool, "a") as file:
            file.write(f"{told}\n")


def _upload(path: str) -> None:
    with open(spool_of(path), "rb") as file:
        upload(path, file, replace=True)


def _folder() -> str:
    return os.path.join(tempfile.gettempdir(), f"marin-logs-{os.getuid()}")


def _make_folder() -> None:
    """A folder that only this user reads; what was forgotten in it is removed."""
    folder = _folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    stat = os.lstat(folder)
    if stat.st_uid != os.getuid() or stat.st_mode & 0o077 or os.path.islink(folder):
        raise PermissionError(
            f"{folder!r} holds logs that are on their way to a bucket and is not this user's alone. Remove it."
        )
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):
            if entry.stat().st_mtime < time.time() - KEPT_S:
                os.unlink(entry.path)
