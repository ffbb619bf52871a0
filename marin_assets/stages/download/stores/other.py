"""Files of a disk, and of every store that fsspec reads and that has no conditions of its own.

The state of a file is compared before a range is read and after it.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator

from marin_assets.stages.download.stores.source_file import SourceError, SourceFile, changed, mark_of, wrong_size
from marin_assets.stages.download.web.faults import Fault
from marin_resources.storage.filesystems.disk_listing import require_file
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import is_local

BLOCK_BYTES = 2**20
State = tuple[str, int | None]


class OtherReader:
    """Reads one file."""

    def __init__(self) -> None:
        self._state: State | None = None
        """When the first range was read."""

    def blocks(self, file: SourceFile, start: int, end: int | None, *, whole: bool) -> Iterator[bytes]:
        """The bytes from `start` to `end`. Raises Fault and SourceError."""
        self._require_unchanged(file)
        fs, path = filesystem_of(file.source)
        if is_local(file.source):
            require_file(path, os.stat(path))
        try:
            with fs.open(path, "rb") as stored:
                stored.seek(start)
                while block := stored.read(BLOCK_BYTES if end is None else min(BLOCK_BYTES, end - start)):
                    start += len(block)
                    yield block
        except FileNotFoundError:
            raise changed(file, file.mark, "a file that was removed") from None
        except PermissionError as error:
            raise SourceError(f"{file.source!r} cannot be read: {error}. Give this user the right.") from error
        except OSError as error:
            raise Fault("connection", f"{file.source!r} cannot be read ({type(error).__name__}: {error})") from error
        self._require_unchanged(file)

    def _require_unchanged(self, file: SourceFile) -> None:
        now = state_of(file.source)
        size_bytes = now[1]
        if self._state is None and file.size_bytes is not None and size_bytes not in (None, file.size_bytes):
            raise wrong_size(file, int(size_bytes or 0))
        if self._state is None:
            self._state = now
        if now != self._state or (file.state and now[0] != file.mark):
            raise changed(file, self._state, now)


def with_comparable_mark(file: SourceFile) -> SourceFile:
    """The file; as a stream, if its mark is another one than that of its listing, which may be spelled otherwise."""
    try:
        return file if state_of(file.source)[0] == file.mark else dataclasses.replace(file, is_stream=True)
    except FileNotFoundError:
        raise changed(file, file.mark, "a file that was removed") from None


def state_of(source: str) -> State:
    """The mark and the size of a file now."""
    fs, path = filesystem_of(source)
    fs.invalidate_cache()
    info = fs.info(path)
    return mark_of(info), info.get("size")
