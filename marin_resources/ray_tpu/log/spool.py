"""The log of an attempt in a bucket: a local file, the spool, that is uploaded whole while it grows.

The spool's path depends on the log's path alone, so shards in other processes append to it, and a follower on this
machine reads it at once. It is removed when all of it is in the bucket.
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
"""Average rate. Each upload sends the whole log, so a log of 100 MB is uploaded every 100 s."""
RETENTION_S = 7 * 24 * 3600.0
"""Retention of the spool of a killed worker if no other process has uploaded it."""

log = logging.getLogger(__name__)


def spool_of(path: str) -> str:
    """Return the local file of the log at `path`."""
    return os.path.join(_folder(), hashlib.sha256(path.encode()).hexdigest()[:32] + ".log")


class LogUploader:
    """Uploads the spool to `path` while the block runs and once at its end. Errors are logged and never raised."""

    def __init__(self, path: str) -> None:
        self._path, self._spool = path, spool_of(path)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-uploader", daemon=True)
        self._uploaded_bytes = 0

    def __enter__(self) -> str:
        """Create the spool and return its path."""
        _make_folder()
        with open(self._spool, "ab"):
            pass
        self._thread.start()
        return self._spool

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
        upload_spool(self._path)

    def _run(self) -> None:
        wait_s = FIRST_UPLOAD_S
        while not self._stop.wait(wait_s):
            try:
                wait_s = max(FIRST_UPLOAD_S, self._upload_if_grown() / UPLOAD_BYTES_PER_S)
            except Exception as error:  # any error of a store or its client: the step keeps running
                log.warning("the log cannot be uploaded now (%s: %s)", type(error).__name__, error)

    def _upload_if_grown(self) -> int:
        """Return the size of the spool in bytes."""
        size_bytes = os.path.getsize(self._spool)
        if size_bytes != self._uploaded_bytes:
            _upload(self._path)
            self._uploaded_bytes = size_bytes
        return size_bytes


def upload_spool(path: str) -> None:
    """Upload the spool of the log at `path`, if this machine has one, and remove it. Errors are printed to stderr."""
    spool = spool_of(path)
    try:
        _upload(path)
        os.unlink(spool)
    except FileNotFoundError:  # uploaded already, on a disk, or another machine's
        return
    except Exception as error:  # the step is done, or has its own error
        message = f"The log {path!r} cannot be uploaded ({type(error).__name__}: {error}). All of it is in {spool!r}."
        sys.stderr.write(f"{message}\n")
        with suppress(OSError), open(spool, "a") as file:
            file.write(f"{message}\n")


def _upload(path: str) -> None:
    with open(spool_of(path), "rb") as file:
        upload(path, file, replace=True)


def _folder() -> str:
    return os.path.join(tempfile.gettempdir(), f"marin-logs-{os.getuid()}")


def _make_folder() -> None:
    """Create a folder that only this user may read, and remove spools that are older than 7 days."""
    folder = _folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    stat = os.lstat(folder)
    if stat.st_uid != os.getuid() or stat.st_mode & 0o077 or os.path.islink(folder):
        raise PermissionError(
            f"The folder {folder!r} holds logs for upload and is accessible to other users. Remove it and run again."
        )
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):
            if entry.stat().st_mtime < time.time() - RETENTION_S:
                os.unlink(entry.path)
