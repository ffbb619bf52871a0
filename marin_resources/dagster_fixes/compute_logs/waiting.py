"""Notes of the logs of this machine that are not stored yet, in one folder, so that a kill loses none.

    <local folder>/.waiting/<digest of the log's key>.json    {"format_version": 1, "log_key": […]}

A note exists before the first byte of its log, and until the store has all of it. The process that writes the log, or
uploads that of a dead one, holds a lock of the kernel on the note, which its death releases.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO

FORMAT_VERSION = 1


class Waiting:
    """The notes of one local folder."""

    def __init__(self, local_dir: str) -> None:
        self.local_dir = os.path.realpath(local_dir)
        self._folder = os.path.join(self.local_dir, ".waiting")

    def claim(self, log_key: Sequence[str]) -> Claim | None:
        """Note a log before its first byte. None if another process has it: that one stores it."""
        os.makedirs(self._folder, exist_ok=True)
        path = os.path.join(self._folder, f"{hashlib.sha256(json.dumps(list(log_key)).encode()).hexdigest()[:32]}.json")
        while (file := _locked(path, "a+")) is not None:
            if os.fstat(file.fileno()).st_nlink:
                file.truncate(0)
                file.write(json.dumps({"format_version": FORMAT_VERSION, "log_key": list(log_key)}))
                file.flush()
                return Claim(log_key, file)
            file.close()  # removed by the process that stored the log, before we had its lock
        return None

    def count(self) -> int:
        """Logs that are not stored: those of processes that live, and of those that have died."""
        return sum(1 for _ in self._paths())

    def of_the_dead(self) -> Iterator[Claim]:
        """Claim the logs of processes that have ended, one after the other."""
        for path in self._paths():
            with suppress(FileNotFoundError):
                file = _locked(path, "r+")
                if file is None:
                    continue
                log_key = _log_key(file)
                if log_key is not None and os.fstat(file.fileno()).st_nlink:
                    yield Claim(log_key, file)
                else:
                    file.close()

    def _paths(self) -> Iterator[str]:
        with suppress(FileNotFoundError):
            yield from sorted(entry.path for entry in os.scandir(self._folder) if entry.name.endswith(".json"))


class Claim:
    """The right of this process to upload a log."""

    def __init__(self, log_key: Sequence[str], file: IO[str]) -> None:
        self.log_key = tuple(log_key)
        self._file = file

    def stored(self) -> None:
        """The store has the log: remove its note."""
        with suppress(FileNotFoundError):
            os.unlink(self._file.name)
        self._file.close()

    def release(self) -> None:
        """Leave the log to the next process."""
        self._file.close()


def _locked(path: str, mode: str) -> IO[str] | None:
    """The file with its lock; None if another process has it, or this one. Raises FileNotFoundError."""
    file: IO[str] = open(path, mode, encoding="utf-8")  # noqa: SIM115  (the holder of the lock closes it)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _log_key(file: IO[str]) -> list[str] | None:
    """The key in a note; None if a later release wrote it, or if its writer was killed before its log had a byte."""
    try:
        note = json.loads(file.read())
    except ValueError:
        with suppress(FileNotFoundError):
            os.unlink(file.name)
        return None
    return note["log_key"] if note["format_version"] == FORMAT_VERSION else None
