"""A mirror's requests to a folder. A copy has a note beside it, a hidden file that says what it is a copy of.

The note of `x` is `.x.mirror`: {"format_version", "copies": {<generation of the copy>: {"path", "generation"}}}. It is
written before the copy appears, with the copy that is still there named too, so a kill in between leaves no copy
without its note; and a file that is written over a copy has another generation, so no note is taken for its own.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from marin_resources.storage.disk import TEMPORARY_SUFFIX
from marin_resources.storage.files import write_json
from marin_resources.storage.manifest.checksum import CRC32C
from marin_resources.storage.mirror.stored import (
    Origin,
    Store,
    Stored,
    changed,
    damaged,
    is_own,
)

NOTE_FORMAT_VERSION = 1
CHUNK_BYTES = 8 * 1024**2
"""One request to a bucket, held in memory."""


class LocalStore:
    def find(self, path: str) -> Stored | None:
        found = _stat(path)
        if found is None:
            return None
        generation = _generation(found)
        return Stored(
            path=path, size_bytes=found.st_size, generation=generation, origin=read_notes(path).get(generation)
        )

    def find_below(self, path: str) -> dict[str, Stored]:
        at_path = self.find(path)
        if at_path is not None:
            return {"": at_path}
        names = (
            os.path.relpath(os.path.join(folder, name), path)
            for folder, _, files in os.walk(path)
            for name in files
            if not is_own(name)
        )
        found = {name: self.find(f"{path}/{name}") for name in names}
        return {name: stored for name, stored in found.items() if stored is not None}

    def read(self, stored: Stored, start: int, end: int) -> bytes:
        try:
            with open(stored.path, "rb") as file:
                if _generation(os.fstat(file.fileno())) != stored.generation:
                    raise changed(stored.path)
                file.seek(start)
                return file.read(max(0, end - start))
        except FileNotFoundError:
            raise changed(stored.path) from None

    def take(
        self,
        source: Stored,
        target: str,
        origin: Origin,
        replaces: str | None,
        check: Callable[[], None],
        *,
        source_store: Store,
    ) -> None:
        folder, name = os.path.split(target)
        os.makedirs(folder, exist_ok=True)
        temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}{TEMPORARY_SUFFIX}")
        try:
            _write_verified(source, temporary, target, check, source_store)
            _publish(temporary, target, origin, replaces)
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)


def note_path(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.mirror")


def read_notes(path: str) -> dict[str, Origin]:
    """Generation of a copy that was put at `path` -> what it is of."""
    try:
        with open(note_path(path), "rb") as file:
            copies = json.load(file)["copies"]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {generation: Origin(**origin) for generation, origin in copies.items()}


def _write_verified(
    source: Stored, temporary: str, target: str, check: Callable[[], None], source_store: Store
) -> None:
    import google_crc32c

    checksum, size_bytes = google_crc32c.Checksum(), 0
    with open(temporary, "wb") as file:
        for start in range(0, source.size_bytes, CHUNK_BYTES):
            check()
            chunk = source_store.read(source, start, min(start + CHUNK_BYTES, source.size_bytes))
            checksum.update(chunk)
            size_bytes += file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    found = _crc32c_text(checksum.digest())
    if size_bytes != source.size_bytes or (source.checksum or found) != found:
        raise damaged(source, target, f"{size_bytes} bytes, {found}")
    now = source_store.find(source.path)
    if now is None or now.generation != source.generation:
        raise changed(source.path)


def _publish(temporary: str, target: str, origin: Origin, replaces: str | None) -> None:
    with _locked(os.path.dirname(target)):
        found = _stat(target)
        here = _generation(found) if found else None
        if here != replaces:
            raise FileExistsError(f"{target!r} was written by someone else in the meantime.")
        copies = {g: o for g, o in read_notes(target).items() if g == here}
        copies[_generation(os.stat(temporary))] = origin
        told = {g: {"path": o.path, "generation": o.generation} for g, o in copies.items()}
        write_json(note_path(target), {"format_version": NOTE_FORMAT_VERSION, "copies": told})
        os.replace(temporary, target)


def _crc32c_text(digest: bytes) -> str:
    return f"{CRC32C}:{base64.b64encode(digest).decode()}"


def _stat(path: str) -> os.stat_result | None:
    """Of a file; None for a folder, and where there is nothing."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _generation(found: os.stat_result) -> str:
    """The same after `cp -a` and `rsync -a`, so that a folder may be moved with its notes."""
    return f"{found.st_mtime_ns}-{found.st_size}"


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """One process at a time publishes into a folder; the kernel frees the lock of one that dies."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
