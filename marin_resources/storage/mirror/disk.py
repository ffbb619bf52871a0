"""A mirror's files in a folder. A hidden file beside a copy, its note, holds the origin.

The note of `x` is `.x.mirror`: {"format_version", "copies": {<generation of the copy>: {"path", "generation"}}}. It is
written before the copy appears and still lists the previous copy, so a kill in between leaves no copy without a note. A
file that is written over a copy has another generation, so the note does not apply to it.
"""

from __future__ import annotations

import base64
import os
import stat
from functools import cache
from typing import IO

from marin_resources.storage.control.disk import locked
from marin_resources.storage.files import write_json
from marin_resources.storage.filesystems.disk import remove_dead_temporaries, temporary_beside
from marin_resources.storage.manifest.checksum import CRC32C
from marin_resources.storage.mirror.protocol import (
    FileCopy,
    MirrorError,
    Origin,
    Stored,
    changed,
    damaged,
    is_own,
)
from marin_resources.types.versioned_json import VersionedJson

NOTE = VersionedJson(kind="note of a copy", newest=1, error=MirrorError)
CHUNK_BYTES = 8 * 1024**2
"""One request to a bucket, held in memory."""


class DiskStore:
    """A folder, or a file in one."""

    def find(self, path: str) -> Stored | None:
        state = _stat(path)
        if state is None:
            return None
        generation = _generation(state)
        return Stored(
            path=path, size_bytes=state.st_size, generation=generation, origin=read_notes(path).get(generation)
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
        candidates = {name: self.find(f"{path}/{name}") for name in names}
        return {name: stored for name, stored in candidates.items() if stored is not None}

    def read(self, stored: Stored, start: int, end: int) -> bytes:
        try:
            with open(stored.path, "rb") as file:
                if _generation(os.fstat(file.fileno())) != stored.generation:
                    raise changed(stored.path)
                file.seek(start)
                return file.read(max(0, end - start))
        except FileNotFoundError:
            raise changed(stored.path) from None

    def write_copy(self, copy: FileCopy) -> None:
        with temporary_beside(copy.target) as file:
            _clean_once(os.path.dirname(copy.target))
            _write_verified(copy, file)
            _publish(copy, file.name)


@cache
def _clean_once(folder: str) -> None:
    """Remove what killed copies have left in a folder. Once in a process: a listing for each file is quadratic."""
    remove_dead_temporaries(folder)


def note_path(path: str) -> str:
    """The path of the note of a copy at `path`."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.mirror")


def read_notes(path: str) -> dict[str, Origin]:
    """Generation of a copy at `path` -> its origin. Raises MirrorError if the note cannot be read."""
    note = note_path(path)
    try:
        with open(note, "rb") as file:  # not through fsspec: a listing reads the note of every file
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    try:
        return {generation: Origin(**origin) for generation, origin in NOTE.parse(text, note)["copies"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise NOTE.invalid(note, error) from error


def _write_verified(copy: FileCopy, file: IO[bytes]) -> None:
    import google_crc32c

    source = copy.source
    checksum, size_bytes = google_crc32c.Checksum(), 0
    for start in range(0, source.size_bytes, CHUNK_BYTES):
        copy.check()
        chunk = copy.source_store.read(source, start, min(start + CHUNK_BYTES, source.size_bytes))
        checksum.update(chunk)
        size_bytes += file.write(chunk)
    file.flush()
    os.fsync(file.fileno())
    digest = _crc32c_text(checksum.digest())
    if size_bytes != source.size_bytes or (source.checksum or digest) != digest:
        raise damaged(copy, f"{size_bytes} bytes, {digest}")
    now = copy.source_store.find(source.path)
    if now is None or now.generation != source.generation:
        raise changed(source.path)


def _publish(copy: FileCopy, temporary: str) -> None:
    """Write the note and rename the copy. The lock on the folder serialises the processes that publish into it."""
    target = copy.target
    with locked(os.path.dirname(target)):
        state = _stat(target)
        here = _generation(state) if state else None
        if here != copy.replaces:
            raise FileExistsError(f"{target!r} was written by another process in the meantime.")
        copies = {g: o for g, o in read_notes(target).items() if g == here}
        copies[_generation(os.stat(temporary))] = copy.origin
        origins = {g: {"path": o.path, "generation": o.generation} for g, o in copies.items()}
        write_json(note_path(target), {"format_version": NOTE.newest, "copies": origins})
        os.replace(temporary, target)


def _crc32c_text(digest: bytes) -> str:
    return f"{CRC32C}:{base64.b64encode(digest).decode()}"


def _stat(path: str) -> os.stat_result | None:
    """The stat of a file; None for a folder, or if nothing exists."""
    try:
        state = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return state if stat.S_ISREG(state.st_mode) else None


def _generation(state: os.stat_result) -> str:
    """Unchanged by `cp -a` and `rsync -a`, so a folder may be moved together with its notes."""
    return f"{state.st_mtime_ns}-{state.st_size}"
