"""Checksums of files, each computed once: in a thread of this process, while ticks come and go.

A tick waits some seconds for them. The thread reads the rest, and a later tick finds it. A process that is
started again reads again what had no delivery taken.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from marin_resources.storage.files import StoredFile, open_to_read, stored_file

BLOCK_BYTES = 4 * 2**20


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A file in a state, whose checksum is wanted."""

    path: str
    size_bytes: int
    stamp: str
    algorithm: str


class ChangedError(OSError):
    """A file that is no longer as it was listed."""


class Checksums:
    """The checksums that are computed so far. One thread reads, one file after the other."""

    def __init__(self) -> None:
        self._found: dict[Wanted, str | OSError] = {}
        self._waiting: dict[Wanted, None] = {}
        self._reading: Wanted | None = None
        self._change = threading.Condition()

    def of(self, files: Collection[Wanted], wait_s: float) -> Mapping[Wanted, str | OSError]:
        """The checksums that are known after so many seconds, or earlier if all are. A failure is returned once."""
        with self._change:
            for file in files:
                if file not in self._found and file != self._reading:
                    self._waiting[file] = None
            if self._waiting and self._reading is None:
                self._reading = self._next()
                threading.Thread(target=self._read_all, daemon=True, name="checksums of deliveries").start()
            missing = [file for file in files if file not in self._found]

            def all_found() -> bool:
                while missing and missing[-1] in self._found:  # they are read in order, so the last one is seldom first
                    missing.pop()
                return not missing

            self._change.wait_for(all_found, wait_s)
            computed = {file: self._found[file] for file in files if file in self._found}
            for file, digest in computed.items():
                if isinstance(digest, OSError):
                    del self._found[file]
            return computed

    def forget(self, paths: Collection[str]) -> None:
        """Forget these files, in whatever state."""
        with self._change:
            for file in [file for file in self._found if file.path in paths]:
                del self._found[file]

    def _next(self) -> Wanted | None:
        file = next(iter(self._waiting), None)
        if file is not None:
            del self._waiting[file]
        return file

    def _read_all(self) -> None:
        while (file := self._reading) is not None:
            try:
                digest: str | OSError = _digest(file)
            except Exception as error:  # of any store; the thread must live, and the next tick names it
                digest = error if isinstance(error, OSError) else OSError(f"{type(error).__name__}: {error}")
            with self._change:
                self._found[file] = digest
                self._reading = self._next()
                self._change.notify_all()


def _digest(file: Wanted) -> str:
    """The checksum of a file that stays as it is while it is read. Raises OSError."""
    before = _as_listed(file)
    digest = hashlib.new(file.algorithm, usedforsecurity=False)
    with open_to_read(file.path) as stream:
        while block := stream.read(BLOCK_BYTES):
            digest.update(block)
    if _as_listed(file) != before:
        raise ChangedError("it changed while it was read")
    return digest.hexdigest()


def _as_listed(file: Wanted) -> StoredFile:
    stored = stored_file(file.path)
    if stored.size_bytes != file.size_bytes:
        raise ChangedError("it changed since it was listed")
    return stored
